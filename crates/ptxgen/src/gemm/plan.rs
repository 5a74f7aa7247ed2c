//! A legal (device, input, configuration), and the program that comes of it.

use super::blueprint::Blueprint;
use super::config::{GROUP, Raster};
use super::finish::{self, Finish};
use super::frame::{Frame, Template};
use super::space::Names;
use crate::count::{Array, CountError, Counter, Launch};
use crate::ir::{Index, Module};
use crate::print::print;
use crate::target::Target;
use std::collections::BTreeMap;
use tilewright_core::counts::Counts;
use tilewright_core::program::{self, Arg, Code, Program, Step};
use tilewright_core::space::Values;
use tilewright_ops::gemm::{A, ALPHA, B, BETA, BIAS, Bias, C, GemmInput, ScalarClass};

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct GemmPlan<T: Template = Blueprint> {
    pub(crate) blueprint: T,
    frame: Frame,
    input: GemmInput,
    /// Tiles of C.
    tiles: [u32; 2],
    /// Blocks that share the stages of all tiles; `None` where each tile has blocks of its own.
    sharing: Option<u32>,
    slice: u32,
    /// Bytes of the partial sums of one slice, and of all.
    slab: u64,
    workspace: u64,
}

/// What the space derives of a launch.
pub(crate) const GRID: [&str; 5] = ["tiles_m", "tiles_n", "slice", "slab_bytes", "workspace_bytes"];

/// A launch of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Product,
    Finish(Finish),
}

impl GemmPlan<Blueprint> {
    /// Of a legal point of the space that the names are of; `None` for one of another space.
    pub(crate) fn new(target: Target, input: &GemmInput, names: &Names, at: &Values<'_>) -> Option<Self> {
        let blueprint = Blueprint::new(target, input, names, at)?;
        let [blocks] = at.ints([names.stream])?;
        let sharing = blueprint.frame().streams().then_some(blocks);
        Some(Self { sharing, ..Self::of(blueprint, input, at.ints(names.grid)?) })
    }
}

impl<T: Template> GemmPlan<T> {
    /// Of a template's blueprint, with the values of [`GRID`].
    pub(crate) fn of(blueprint: T, input: &GemmInput, grid: [u64; GRID.len()]) -> Self {
        let [tiles_m, tiles_n, slice, slab, workspace] = grid;
        let (frame, tiles) = (blueprint.frame(), [tiles_m as u32, tiles_n as u32]);
        Self { blueprint, frame, input: input.clone(), tiles, sharing: None, slice: slice as u32, slab, workspace }
    }

    /// What the code is specialised to.
    pub fn blueprint(&self) -> &T {
        &self.blueprint
    }

    /// Every module of the program, in order, as trees.
    pub fn modules(&self) -> Vec<Module> {
        self.parts().into_iter().map(|part| self.module_of(part)).collect()
    }

    fn module_of(&self, part: Part) -> Module {
        match part {
            Part::Product => self.blueprint.module(),
            Part::Finish(finish) => finish::module(&self.frame, finish),
        }
    }

    /// Every launch of the program, in order: the tree, and its blocks and parameters in words of the input.
    pub fn launches(&self) -> Vec<(Module, Launch)> {
        self.parts().into_iter().map(|part| (self.module_of(part), self.launch_of(part))).collect()
    }

    /// Symbolic counts of the program, in words of the input.
    ///
    /// # Errors
    /// What the counter has no form for; templates are made so that there is none.
    pub fn count(&self) -> Result<Counts, CountError> {
        if self.sharing.is_some() {
            let (place, index) = ("segments".to_owned(), "the stages of a block".to_owned());
            return Err(CountError::NotCountable {
                place,
                what: "a loop whose length differs from block to block",
                index,
            });
        }
        let mut counter = Counter::new();
        for (module, launch) in self.launches() {
            counter.launch(&module, &launch)?;
        }
        Ok(counter.finish())
    }

    /// The image of [`GemmPlan::product`] and [`GemmPlan::finish`] in words of the input.
    fn launch_of(&self, part: Part) -> Launch {
        let c = &self.frame;
        let sizes = self.input.operand_types().map(|dtype| Index::from(dtype.size() as i64));
        let [m, n, k] = ["m", "n", "k"].map(Index::param);
        let tiles = |size: &Index, by: u32| size.plus(&(i64::from(by) - 1).into()).floor(by.into());
        let batch = if c.batched { Index::param("batch") } else { 1.into() };
        let strides = ["stride_a", "stride_b", "stride_c"].into_iter().zip(&sizes);
        let mut params: BTreeMap<String, Index> =
            strides.map(|(stride, size)| (stride.to_owned(), Index::param(stride).times(size))).collect();
        params.insert("slab".into(), m.times(&n).times(&i64::from(c.sums().bytes).into()));
        let grid = match part {
            Part::Product => {
                params.insert("slice".into(), tiles(&tiles(&k, c.k_g), c.u).times(&i64::from(c.u).into()));
                if self.ordered() {
                    params.insert("ldc".into(), m.clone());
                }
                let (rows, columns) = (tiles(&m, c.tile[0]), tiles(&n, c.tile[1]));
                let z = batch.times(&i64::from(c.k_g).into());
                match c.raster {
                    Raster::M => [rows, columns, z],
                    Raster::N => [columns, rows, z],
                    Raster::Grouped => [rows.times(&i64::from(GROUP).into()), columns.floor(GROUP.into()), z],
                }
            }
            Part::Finish(_) => {
                let lines = tiles(&n, finish::COLUMNS);
                let blocks = lines.smaller(&i64::from(finish::LINES).into());
                let above = lines.plus(&blocks).minus(&1.into());
                params.insert("passes".into(), above.quotient(&blocks));
                [tiles(&m, finish::ROWS), blocks, batch]
            }
        };
        let (a, b) = (&c.a_transposed, &c.b_transposed);
        let array = |name: &str, used: &Index, pitch: &str| {
            (name.to_owned(), Array { used: used.clone(), pitch: Index::param(pitch) })
        };
        let arrays = [
            array("a", if *a { &k } else { &m }, "lda"),
            array("b", if *b { &n } else { &k }, "ldb"),
            // Partial sums are dense.
            array("c", &m, if self.ordered() && part == Part::Product { "m" } else { "ldc" }),
            array("work", &m, "m"),
        ];
        Launch { params, arrays: arrays.into(), ..Launch::new(grid) }
    }

    /// The launches of the program, in order.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.input.m == 0 || self.input.n == 0 {
            return parts;
        }
        let scales = self.atomic() || !self.input.multiplies();
        // Where nothing is multiplied, C may still be added to.
        if scales && (self.input.beta != ScalarClass::One || !self.input.epilogue.is_empty()) {
            parts.push(Part::Finish(Finish::Scale));
        }
        if self.input.multiplies() {
            parts.push(Part::Product);
        }
        if self.ordered() {
            parts.push(Part::Finish(Finish::Sum));
        }
        parts
    }

    fn ordered(&self) -> bool {
        self.frame.ordered()
    }

    fn atomic(&self) -> bool {
        self.frame.atomic()
    }

    /// Blocks that share the stages of all tiles; `None` where each tile has blocks of its own.
    pub fn sharing(&self) -> Option<u32> {
        self.sharing
    }

    /// Steps of the reduction of one slice: whole stages.
    pub fn slice(&self) -> u32 {
        self.slice
    }

    /// Blocks of the product.
    pub fn grid(&self) -> [u32; 3] {
        let (c, [m, n]) = (&self.frame, self.tiles);
        if let Some(blocks) = self.sharing {
            return [blocks, 1, 1];
        }
        let z = c.k_g * self.input.batch.count;
        let [x, y] = c.grid(m, n);
        [x, y, z]
    }

    fn strides(&self) -> [u64; 3] {
        let (strides, types) = (self.input.batch.strides, self.input.operand_types());
        [A, B, C].map(|operand| strides[operand] * types[operand].size() as u64)
    }

    /// The program on buffers that begin so many bytes before the operands. Offsets must keep the alignment of the input.
    pub fn program(&self, offsets: [u64; 3]) -> Program {
        let step = |part| match part {
            Part::Product => self.product(offsets),
            Part::Finish(finish) => self.finish(finish, offsets[C]),
        };
        let steps = self.parts().into_iter().map(step).collect();
        Program::new(steps, if self.frame.uses_workspace() { self.workspace } else { 0 })
    }

    fn product(&self, offsets: [u64; 3]) -> Step {
        let c = if self.ordered() { Arg::Workspace(0) } else { Arg::Buffer(C, offsets[C]) };
        let operands = [Arg::Buffer(A, offsets[A]), Arg::Buffer(B, offsets[B]), c];
        self.product_of(operands, [Arg::Scalar(ALPHA), Arg::Scalar(BETA)])
    }

    /// The launch of the product on operands that lie anywhere; C is where partial sums go where there are some.
    pub(crate) fn product_of(&self, operands: [Arg; 3], scalars: [Arg; 2]) -> Step {
        let (frame, input) = (&self.frame, &self.input);
        let module = self.module_of(Part::Product);
        let ldc = if self.ordered() { input.m } else { input.ldc };
        let mut args = operands.to_vec();
        args.extend([input.m, input.n, input.k, input.lda, input.ldb, ldc].map(|x| Arg::U32(x as u32)));
        args.extend(scalars);
        if frame.k_g > 1 {
            args.push(Arg::U32(self.slice()));
        }
        if frame.batched {
            args.extend(self.strides().map(Arg::U64));
        }
        if frame.takes_tickets() {
            args.push(Arg::Workspace(0));
        }
        if frame.uses_workspace() {
            args.push(Arg::U64(self.slab));
        }
        if frame.adds_bias() {
            args.push(Arg::Buffer(BIAS, 0));
        }
        let shared_bytes = if frame.dynamic_shared() { frame.shared_bytes } else { 0 };
        launch(&module, self.grid(), shared_bytes, args)
    }

    fn finish(&self, finish: Finish, offset: u64) -> Step {
        let input = &self.input;
        let module = self.module_of(Part::Finish(finish));
        let lines = (input.n as u32).div_ceil(finish::COLUMNS);
        let blocks = lines.min(finish::LINES);
        let grid = [(input.m as u32).div_ceil(finish::ROWS), blocks, self.input.batch.count];
        let mut args = vec![Arg::Buffer(C, offset)];
        if finish == Finish::Sum {
            args.extend([Arg::Workspace(0), Arg::U64(self.slab)]);
        }
        args.extend([input.m, input.n, input.ldc].map(|x| Arg::U32(x as u32)));
        args.extend([Arg::Scalar(ALPHA), Arg::Scalar(BETA), Arg::U32(lines.div_ceil(blocks))]);
        if self.frame.batched {
            args.push(Arg::U64(self.strides()[C]));
        }
        if input.epilogue.bias != Bias::None {
            args.push(Arg::Buffer(BIAS, 0));
        }
        let step = launch(&module, grid, 0, args);
        if finish == Finish::Sum && self.frame.overlaps() { overlapping(step) } else { step }
    }
}

/// The same launch, whose code waits for the one before it.
fn overlapping(step: Step) -> Step {
    match step {
        Step::Launch(mut launch) => {
            launch.attributes.overlaps = true;
            Step::Launch(launch)
        }
        other => other,
    }
}

/// The launch of a module's entry.
pub(crate) fn launch(module: &Module, grid: [u32; 3], shared_bytes: u32, args: Vec<Arg>) -> Step {
    let code = Code::Ptx { text: print(module), entry: module.entry.name.clone() };
    Step::Launch(program::Launch::new(code, grid, [module.entry.threads, 1, 1], args).sharing(shared_bytes))
}
