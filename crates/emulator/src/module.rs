//! A module: parsed text whose kernels can be launched.

use crate::kernel::Kernel;
use crate::lower::lower;
use crate::text::ast::{Ast, Variable};
use crate::text::{ParseError, Place, parse};
use crate::types::Space;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

/// An instruction or declaration that the emulator does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {opcode}: {message}")]
pub struct LoadError {
    /// Where.
    pub place: Place,
    /// The instruction or declaration.
    pub opcode: String,
    /// What is wrong with it, or not supported.
    pub message: String,
}

/// A variable at module scope.
#[derive(Clone, Debug)]
pub(crate) struct ModuleVariable {
    pub(crate) name: String,
    pub(crate) contents: Vec<u8>,
    /// Addresses among the contents: the byte where one stands, the number of a variable, an offset.
    pub(crate) addresses: Vec<(usize, usize, i64)>,
    pub(crate) read_only: bool,
}

/// A parsed module.
#[derive(Debug)]
pub struct Module {
    /// Tells this module's variables in a memory from those of others.
    pub(crate) number: u64,
    version: (u32, u32),
    target: String,
    pub(crate) variables: Vec<ModuleVariable>,
    pub(crate) kernels: BTreeMap<String, Result<Kernel, LoadError>>,
}

/// The longest variable at module scope.
const MAX_VARIABLE: u64 = 1 << 28;
/// All variables at module scope.
const MAX_VARIABLES: u64 = 1 << 30;

impl Module {
    /// Reads PTX text. A kernel with instructions that the emulator does not know is kept; launching it says which.
    ///
    /// # Errors
    /// Text that is no PTX, with its place and what was expected there.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let ast = parse(text)?;
        let variables = variables(&ast)?;
        let mut kernels = BTreeMap::new();
        for function in ast.functions.iter().filter(|f| f.is_entry && f.body.is_some()) {
            kernels.insert(function.name.to_owned(), lower(&ast, function));
        }
        Ok(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            version: ast.version,
            target: ast.target.to_owned(),
            variables,
            kernels,
        })
    }

    /// The version of the language that the text asks for.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The target that the text was written for, such as `sm_80`; empty where it names none.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The names of the kernels.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// Why a kernel cannot run, if it cannot.
    pub fn check(&self, entry: &str) -> Option<&LoadError> {
        self.kernels.get(entry).and_then(|k| k.as_ref().err())
    }

    /// Names and bytes of a kernel's parameters, in order; `None` where there is no such kernel or it cannot run.
    pub fn parameters(&self, entry: &str) -> Option<Vec<(&str, usize)>> {
        let kernel = self.kernels.get(entry)?.as_ref().ok()?;
        Some(kernel.params.iter().map(|p| (p.name.as_str(), p.bytes as usize)).collect())
    }

    /// Bytes of shared memory that a kernel declares, where it can be run.
    pub fn shared_bytes(&self, entry: &str) -> Option<u32> {
        self.kernels.get(entry)?.as_ref().ok().map(|k| k.shared_bytes)
    }
}

/// The variables that have memory of their own; shared ones at module scope belong to the kernels.
fn variables(ast: &Ast<'_>) -> Result<Vec<ModuleVariable>, ParseError> {
    let numbers: HashMap<&str, usize> = module_variables(ast).enumerate().map(|(i, v)| (v.name, i)).collect();
    let mut total = 0u64;
    for v in module_variables(ast) {
        total = total.saturating_add(v.bytes.unwrap_or(0));
        if total > MAX_VARIABLES {
            let expected = format!("at most {MAX_VARIABLES} bytes of variables in all");
            return Err(ParseError { place: v.place, expected, found: total.to_string() });
        }
    }
    module_variables(ast)
        .map(|v| {
            let bytes = v.bytes.unwrap_or(0);
            if bytes > MAX_VARIABLE {
                let expected = format!("a variable of at most {MAX_VARIABLE} bytes");
                return Err(ParseError { place: v.place, expected, found: bytes.to_string() });
            }
            let element = v.ty.bytes() as usize;
            let values = v.values.iter().flat_map(|x| x.to_le_bytes().into_iter().chain([0; 8]).take(element));
            let mut contents = vec![0; bytes as usize];
            contents.iter_mut().zip(values).for_each(|(to, from)| *to = from);
            // The address of a function stays zero: nothing can be called through it.
            let address = |(at, name, offset): &(usize, &str, i64)| Some((at * element, *numbers.get(name)?, *offset));
            let addresses = v.symbols.iter().filter_map(address).collect();
            Ok(ModuleVariable { name: v.name.to_owned(), contents, addresses, read_only: v.space == Space::Const })
        })
        .collect()
}

/// The declarations of [`variables`], in the same order.
pub(crate) fn module_variables<'m, 'a>(ast: &'m Ast<'a>) -> impl Iterator<Item = &'m Variable<'a>> {
    ast.variables.iter().filter(|v| matches!(v.space, Space::Global | Space::Const))
}
