//! A legal (device, input, configuration), and the program that comes of it.

use super::blueprint::Blueprint;
use super::job::Job;
use super::space::Description;
use super::{emit, finish, table};
use crate::ir::Module;
use crate::print::print;
use crate::target::Target;
use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use tilewright_core::dtype::DType;
use tilewright_core::program::{Arg, Code, Launch, Program, Step};
use tilewright_core::space::Values;
use tilewright_ops::conv::{BIAS, ConvInput, Correlation, Layout};

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct ConvPlan {
    blueprint: Blueprint,
    input: ConvInput,
    jobs: Vec<Job>,
    /// Bytes of the table, of the partial sums of one slice, and of all together.
    table: u64,
    slab: u64,
    workspace: u64,
}

/// What the space derives of the workspace.
pub(super) const MEMORY: [&str; 3] = ["table_bytes", "slab_bytes", "workspace_bytes"];

/// A launch of the program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    /// The table of a correlation.
    Table(&'a Job),
    Product(&'a Job),
    /// The sum of so many slices; zeros where there are none.
    Finish(u32),
}

impl ConvPlan {
    /// Of a legal point; `None` for one of another space.
    pub(super) fn new(target: Target, input: &ConvInput, at: &Values<'_>) -> Option<Self> {
        let blueprint = Blueprint::new(target, input, at)?;
        let [table, slab, workspace] = at.ints::<u64, _>(Description::get().memory)?;
        let jobs = Correlation::all(input).iter().map(Job::of).collect();
        Some(Self { blueprint, input: input.clone(), jobs, table, slab, workspace })
    }

    /// What the code is specialised to.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// The input.
    pub fn input(&self) -> &ConvInput {
        &self.input
    }

    /// Every module of the program, in order, as trees.
    pub fn modules(&self) -> Vec<Module> {
        self.parts().into_iter().map(|part| self.module_of(part)).collect()
    }

    pub(super) fn module_of(&self, part: Part<'_>) -> Module {
        match part {
            Part::Table(_) => table::module(self.blueprint.target),
            Part::Product(_) => emit::module(&self.blueprint),
            Part::Finish(slices) => finish::module(&self.blueprint, slices),
        }
    }

    /// Elements of the result.
    fn elements(&self) -> u32 {
        self.input.tensors().lens()[self.input.written()] as u32
    }

    /// The launches of the program, in order. Tables lie in one place: each is made when the one before it has been used.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        if self.elements() == 0 {
            return Vec::new();
        }
        let slices = self.blueprint.config.c_g;
        let products = self.met().flat_map(|job| [Part::Table(job), Part::Product(job)]);
        let zeros = (self.has_unmet() && slices == 1 || self.met().next().is_none()).then_some(Part::Finish(0));
        let sum = (slices > 1 && self.met().next().is_some()).then_some(Part::Finish(slices));
        zeros.into_iter().chain(products).chain(sum).collect()
    }

    /// The correlations that sum anything.
    fn met(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.depth > 0)
    }

    /// Whether some positions meet no tap: zeros are written before the others.
    fn has_unmet(&self) -> bool {
        self.jobs.iter().any(|job| job.depth == 0)
    }

    /// Steps of a slice of a correlation: whole stages, one at least.
    fn slice(&self, job: &Job) -> u32 {
        let config = &self.blueprint.config;
        (job.depth.max(1) as u32).div_ceil(config.c_g).next_multiple_of(config.u)
    }

    /// The program.
    pub fn program(&self) -> Program {
        let (parts, slices) = (self.parts(), self.blueprint.config.c_g);
        let works = self.met().next().is_some() && !parts.is_empty();
        let bytes = self.slab * u64::from(slices);
        let clear = works && slices > 1 && self.has_unmet();
        let clear = clear.then_some(Step::Fill { offset: self.table, bytes, value: 0 });
        let mut made = HashMap::new();
        let launches = parts.into_iter().map(|part| self.launch(&mut made, part));
        let steps = clear.into_iter().chain(launches).collect();
        Program::new(steps, if works { self.workspace } else { 0 })
    }

    /// A launch. Tables of all correlations are filled by one module, and their products are made by one.
    fn launch<'a>(&self, made: &mut HashMap<Discriminant<Part<'a>>, (Code, u32)>, part: Part<'a>) -> Step {
        let (grid, args, shared) = self.given(part);
        let (code, threads) = made.entry(discriminant(&part)).or_insert_with(|| {
            let module = self.module_of(part);
            (Code::Ptx { text: print(&module), entry: module.entry.name.clone() }, module.entry.threads)
        });
        Step::Launch(Launch::new(code.clone(), grid, [*threads, 1, 1], args).sharing(shared))
    }

    /// Blocks, arguments and bytes of shared memory of a launch.
    pub(super) fn given(&self, part: Part<'_>) -> ([u32; 3], Vec<Arg>, u32) {
        match part {
            Part::Table(job) => self.table(job),
            Part::Product(job) => self.product(job),
            Part::Finish(slices) => self.finish(slices),
        }
    }

    /// Entries of a table.
    pub(super) fn entries(&self, job: &Job) -> u32 {
        let config = &self.blueprint.config;
        config.c_g * self.slice(job) + config.stages * config.u
    }

    fn table(&self, job: &Job) -> ([u32; 3], Vec<Arg>, u32) {
        let entries = self.entries(job);
        let mut args = vec![Arg::Workspace(0)];
        let counts = [job.digits[0].count.max(1), job.digits[1].count.max(1)];
        args.extend([entries, job.depth as u32, counts[0] as u32, counts[1] as u32].map(Arg::U32));
        args.extend(job.look.words().map(Arg::U32));
        args.extend(job.digits.iter().flat_map(|digit| digit.step.words()).map(Arg::U32));
        ([entries.div_ceil(table::THREADS), 1, 1], args, 0)
    }

    fn product(&self, job: &Job) -> ([u32; 3], Vec<Arg>, u32) {
        let (bp, input) = (&self.blueprint, &self.input);
        let types = input.types;
        let (gathered, written) = (input.gathered(), input.written());
        // What is neither gathered nor written.
        let filter = 3 - gathered - written;
        let at = |start: usize, dtype: DType| (start * dtype.size()) as u64;
        let result = match bp.partial() {
            true => Arg::Workspace(self.table + at(job.first[2], types.accumulator)),
            false => Arg::Buffer(written, at(job.first[2], types.output)),
        };
        let read = |buffer: usize, start: usize| Arg::Buffer(buffer, at(start, types.operand));
        let mut args = vec![read(gathered, job.first[0]), read(filter, job.first[1]), Arg::Workspace(0), result];
        if !bp.partial() {
            args.extend(input.epilogue.bias.then_some(Arg::Buffer(BIAS, 0)));
            args.extend(input.residual().map(|buffer| Arg::Buffer(buffer, 0)));
        }
        let sizes = [job.images.count, job.grid[0], job.grid[1]];
        let block = bp.config.block();
        let tiles = [0, 1, 2].map(|d| sizes[d].div_ceil(block[d] as usize));
        let [inner, middle, _] = bp.order();
        let slice = self.slice(job);
        let result = &job.result;
        let mut numbers = vec![job.outs.count];
        numbers.extend(sizes);
        numbers.extend([job.rows.count, job.columns.count]);
        numbers.extend(job.step);
        numbers.extend(job.origin.map(|x| x as usize));
        numbers.extend([job.images.stride, job.rows.stride, job.columns.stride, job.outs.stride]);
        numbers.extend([result.image, result.row, result.column, result.out]);
        numbers.extend([tiles[inner], tiles[middle], (slice / bp.config.u) as usize]);
        if bp.grouped {
            numbers.extend(job.groups);
        }
        args.extend(numbers.into_iter().map(|x| Arg::U32(x as u32)));
        if bp.partial() {
            args.extend([Arg::U32(slice), Arg::U64(self.slab)]);
        }
        let along_k = job.outs.count.div_ceil(bp.config.k_l as usize);
        let grid = [tiles.iter().product(), along_k, input.groups * bp.config.c_g as usize];
        (grid.map(|x: usize| x as u32), args, if bp.dynamic_shared() { bp.shared_bytes } else { 0 })
    }

    fn finish(&self, slices: u32) -> ([u32; 3], Vec<Arg>, u32) {
        let input = &self.input;
        let mut args = vec![Arg::Buffer(input.written(), 0)];
        if slices > 0 {
            args.extend([Arg::Workspace(self.table), Arg::U64(self.slab)]);
        }
        if input.epilogue.bias {
            let [p, q] = input.output();
            let apart = if input.layout == Layout::Nchw { p * q } else { 1 };
            args.extend([Arg::Buffer(BIAS, 0), Arg::U32(apart as u32), Arg::U32(input.k as u32)]);
        }
        args.extend(input.residual().map(|buffer| Arg::Buffer(buffer, 0)));
        args.push(Arg::U32(self.elements()));
        ([self.elements().div_ceil(finish::THREADS), 1, 1], args, 0)
    }
}
