//! A legal (device, input, configuration), and the program that comes of it.

use super::super::operands::Tensor;
use super::super::taps::Taps;
use super::emit::{Code, NUMBERS};
use super::space::{Config, Description};
use crate::gemm::launch;
use crate::ir::Module;
use crate::simt::Arithmetic;
use crate::target::Target;
use tilewright_core::program::{Arg, Program, Step};
use tilewright_core::space::Values;
use tilewright_ops::conv::{BIAS, ConvInput, Correlation};

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct DirectPlan {
    target: Target,
    input: ConvInput,
    config: Config,
    registers_needed: u32,
    /// The correlations that have positions, and their taps.
    parts: Vec<(Correlation, Taps)>,
}

impl DirectPlan {
    /// Of a legal point; `None` for one of another space.
    pub(super) fn new(target: Target, input: &ConvInput, at: &Values<'_>) -> Option<Self> {
        let config = Config::of(at)?;
        let [registers_needed] = at.ints(Description::get().registers)?;
        let there = |of: &Correlation| of.images.count * of.positions() * of.outs.count > 0;
        let parts = Correlation::all(input).into_iter().filter(there);
        let parts = parts.map(|of| (Taps::of(&of), of)).map(|(taps, of)| (of, taps)).collect();
        Some(Self { target, input: input.clone(), config, registers_needed, parts })
    }

    /// The input.
    pub fn input(&self) -> &ConvInput {
        &self.input
    }

    /// Whether the assembler may spill: it moves the loads of unrolled rows of taps up as far as it likes.
    pub fn may_spill(&self) -> bool {
        self.config.unrolled
    }

    /// Every module of the program, in order, as trees.
    pub fn modules(&self) -> Vec<Module> {
        self.parts.iter().map(|(of, taps)| self.code(of, taps).module()).collect()
    }

    /// The program.
    pub fn program(&self) -> Program {
        Program::new(self.parts.iter().map(|(of, taps)| self.launch(of, taps)).collect(), 0)
    }

    fn code(&self, of: &Correlation, taps: &Taps) -> Code {
        Code {
            target: self.target,
            arithmetic: Arithmetic::of(self.input.types),
            config: self.config,
            direction: self.input.direction,
            epilogue: self.input.epilogue,
            grouped: self.input.groups > 1,
            taps: *taps,
            channels: of.channels.count as u32,
            step: of.step.map(|step| step as u32),
            near_columns: of.columns.stride == 1,
            registers_needed: self.registers_needed,
        }
    }

    fn launch(&self, of: &Correlation, taps: &Taps) -> Step {
        let (input, config) = (&self.input, &self.config);
        let [gathered, filter, result] =
            [Tensor::Gathered, Tensor::Filter, Tensor::Result].map(|tensor| tensor.of(input, of));
        let strips = of.grid[1].div_ceil(config.q_s as usize);
        let groups = if config.along_groups { input.groups } else { 1 };
        let units = of.images.count * of.grid[0] * strips * groups;
        let numbers: [usize; NUMBERS.len()] = [
            units,
            of.outs.count,
            strips,
            of.grid[0],
            of.grid[1],
            input.groups,
            of.rows.count,
            of.columns.count,
            // What lies in the padding is negative and wraps round.
            of.origin[0] as usize,
            of.origin[1] as usize,
            of.images.stride,
            of.rows.stride,
            of.columns.stride,
            of.channels.stride,
            gathered.1,
            taps.first as usize,
            of.outs.stride,
            of.filter_channel,
            taps.strides[0] as usize,
            taps.strides[1] as usize,
            filter.1,
            of.result.image,
            of.result.row,
            of.result.column,
            of.result.out,
            result.1,
        ];
        let mut args = vec![gathered.0, filter.0, result.0];
        args.extend(input.epilogue.bias.then_some(Arg::Buffer(BIAS, 0)));
        args.extend(input.residual().map(|buffer| Arg::Buffer(buffer, 0)));
        args.extend(numbers.map(|x| Arg::U32(x as u32)));
        let along_k = of.outs.count.div_ceil(config.k_s as usize);
        let grid = [units.div_ceil(config.threads as usize), along_k, input.groups / groups];
        launch(&self.code(of, taps).module(), grid.map(|x| x as u32), 0, args)
    }
}
