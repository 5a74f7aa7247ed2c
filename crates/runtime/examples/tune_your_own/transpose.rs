//! The computation and the kernel: `y = x` transposed, f32, row-major.

use std::sync::Arc;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Expected, ExpectedBuffer, Filling, Role, Workload};
use tilewright_core::computation::{Computation, InputError, InputLimits, Work, size_word};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Val, Value};
use tilewright_core::feature::Feature;
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::kernel::Kernel;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program, ScalarSpec};
use tilewright_core::space::{
    BoundSpace, Config, Legal, Param, ParamSpace, Point, RuleGroup, SpaceError, Symbols, Values,
};

/// Largest accepted size of a side.
const LARGEST: u64 = 1 << 14;

pub(crate) struct Transpose;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    rows: usize,
    columns: usize,
}

impl Computation for Transpose {
    type Input = Shape;

    fn id(&self) -> ComputationId {
        ComputationId::new("transpose")
    }

    fn parse(&self, words: &Config) -> Result<Shape, InputError> {
        let side = |name| size_word(words, name, 1, LARGEST, None).map(|s| s as usize);
        Ok(Shape { rows: side("rows")?, columns: side("columns")? })
    }

    fn words(&self, input: &Shape) -> Config {
        let side = |name: &str, size: usize| (name.to_owned(), Value::from(size));
        Config(vec![side("rows", input.rows), side("columns", input.columns)])
    }

    fn work(&self, input: &Shape) -> Work {
        Work { flops: 0.0, bytes: 8.0 * (input.rows * input.columns) as f64 }
    }

    fn workload(&self, input: &Shape, _: Filling, seed: u64) -> Workload {
        let len = input.rows * input.columns;
        let (mut x, mut y) = (Buffer::zeroed(DType::F32, len), Buffer::zeroed(DType::F32, len));
        // Every element different, and exact in f32.
        let first = seed % 1000;
        x.as_mut_slice::<f32>().iter_mut().zip(first..).for_each(|(x, i)| *x = (i % (1 << 24)) as f32);
        y.as_mut_slice::<f32>().fill(f32::NAN);
        Workload { specs: self.buffers(input), buffers: vec![x, y], scalars: Vec::new() }
    }

    fn buffers(&self, input: &Shape) -> Vec<BufferSpec> {
        let spec = |name, role| BufferSpec { name, dtype: DType::F32, len: input.rows * input.columns, role };
        vec![spec("x", Role::In), spec("y", Role::Out)]
    }

    fn scalars(&self, _: &Shape) -> Vec<ScalarSpec> {
        Vec::new()
    }

    fn reference(&self, input: &Shape, before: &Buffers, _: &[f64]) -> Expected {
        let at = |i: usize| before[0].get_f64(i % input.rows * input.columns + i / input.rows);
        let values: Vec<f64> = (0..before[0].len()).map(at).collect();
        let bounds = vec![0.0; values.len()];
        Expected { buffers: vec![ExpectedBuffer { index: 1, values, bounds }] }
    }

    fn feature_names(&self) -> Vec<Feature> {
        vec![Feature::size("rows"), Feature::size("columns")]
    }

    fn features(&self, input: &Shape, out: &mut Vec<f32>) {
        out.extend([input.rows as f32, input.columns as f32]);
    }

    fn draw(&self, _: &Config, limits: &InputLimits, uniform: &mut dyn FnMut() -> f64) -> Result<Shape, InputError> {
        let most = (limits.max_bytes / 8.0).clamp(1.0, LARGEST as f64);
        let rows = most.powf(uniform()).floor();
        let columns = (limits.max_bytes / 8.0 / rows).clamp(1.0, LARGEST as f64).powf(uniform()).floor();
        Ok(Shape { rows: rows as usize, columns: columns as usize })
    }
}

/// Transposes block by block.
pub(crate) struct TransposeKernel {
    space: ParamSpace,
}

/// Rows and columns of a block of `x`, and whether blocks follow each other along the columns.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    rows: usize,
    columns: usize,
    along_columns: bool,
}

impl Blocks {
    /// The parameters of a point of the kernel's space.
    fn of(at: &Values<'_>) -> Self {
        let size = |name| at.int(name).unwrap_or(1);
        let along_columns = at.get("order") == Some(Val::Str("columns"));
        Self { rows: size("block_rows"), columns: size("block_columns"), along_columns }
    }
}

/// A legal configuration for one input.
pub(crate) struct Plan {
    shape: Shape,
    blocks: Blocks,
}

const SIZES: [i64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

impl TransposeKernel {
    pub(crate) fn new() -> Result<Self, SpaceError> {
        let space = ParamSpace::builder()
            .param(Param::ints("block_rows", SIZES))
            .param(Param::ints("block_columns", SIZES))
            .param(Param::words("order", ["rows", "columns"]))
            .rule("rows", RuleGroup::Guideline, "block_rows < 2 * rows", "a larger block is the same block")
            .rule("columns", RuleGroup::Guideline, "block_columns < 2 * columns", "a larger block is the same block")
            .build()?;
        Ok(Self { space })
    }
}

impl Kernel for TransposeKernel {
    type Of = Transpose;
    type Plan = Plan;

    fn id(&self) -> KernelId {
        KernelId::new("transpose.blocked")
    }

    fn computation(&self) -> &Transpose {
        &Transpose
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    fn symbols(&self, device: &DeviceSpec, input: &Shape) -> Symbols {
        device.symbols().with("rows", input.rows).with("columns", input.columns)
    }

    fn plan(&self, _: &DeviceSpec, input: &Shape, at: &Legal<'_>) -> Plan {
        Plan { shape: input.clone(), blocks: Blocks::of(at) }
    }

    fn generate(&self, plan: &Plan) -> Program {
        Program::host(Arc::new(Code { shape: plan.shape.clone(), blocks: plan.blocks.clone() }), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        vec![Feature::size("block_rows"), Feature::size("block_columns"), Feature::flag("along_columns")]
    }

    fn features(&self, _: &DeviceSpec, _: &Shape, at: &Values<'_>, out: &mut Vec<f32>) {
        let blocks = Blocks::of(at);
        out.extend([blocks.rows as f32, blocks.columns as f32, f32::from(u8::from(blocks.along_columns))]);
    }

    fn default_point(&self, _: &DeviceSpec, _: &Shape, space: &BoundSpace) -> Option<Point> {
        // Blocks of one element, along the columns: what is not named takes its first values.
        space.preferred_point(|param| if param.name == "order" { vec![Value::from("columns")] } else { Vec::new() })
    }
}

struct Code {
    shape: Shape,
    blocks: Blocks,
}

impl HostCode for Code {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let [x, y] = args.buffers else {
            return Err(DeviceError::Argument { name: "buffers".into(), message: "2 are needed: x, y".into() });
        };
        let len = self.shape.rows * self.shape.columns;
        if x.len() < len || y.len() < len {
            return Err(DeviceError::Argument { name: "x, y".into(), message: format!("at least {len} elements") });
        }
        let (x, y) = (x.as_slice::<f32>(), y.as_mut_slice::<f32>());
        let starts = |size: usize, step: usize| (0..size).step_by(step);
        let (rows, columns) = (self.shape.rows, self.shape.columns);
        if self.blocks.along_columns {
            for r in starts(rows, self.blocks.rows) {
                starts(columns, self.blocks.columns).for_each(|c| self.block(x, y, r, c));
            }
        } else {
            for c in starts(columns, self.blocks.columns) {
                starts(rows, self.blocks.rows).for_each(|r| self.block(x, y, r, c));
            }
        }
        Ok(())
    }
}

impl Code {
    fn block(&self, x: &[f32], y: &mut [f32], row: usize, column: usize) {
        let Shape { rows, columns } = self.shape;
        for c in column..columns.min(column + self.blocks.columns) {
            for r in row..rows.min(row + self.blocks.rows) {
                y[c * rows + r] = x[r * columns + c];
            }
        }
    }
}
