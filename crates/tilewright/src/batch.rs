//! Several products of one shape in one call: at constant distances as one input, or wherever slices say.

use crate::callable::Callable;
use crate::error::Error;
use crate::request::{Request, gemm};
use tilewright_core::buffer::{BufferSpec, Element, Role};

/// `count` products as [`gemm`] describes one, their operands one right behind the other, decided and called as one. Other distances, in
/// elements, by [`Request::with`]: `stride_a`, `stride_b` (0 for an operand that all share), `stride_c`. For operands that lie anywhere
/// plan a single product, and call it by [`Callable::call_batch`].
pub fn gemm_batch(count: usize, m: usize, n: usize, k: usize) -> Request {
    gemm(m, n, k).with("batch", count)
}

impl Callable {
    /// Computes once for each A, B and C of as many products: what libraries call pointer arrays. Scalars, which are the same for all,
    /// are looked at once, and lengths of all before the first runs; nothing is copied on the host. No C overlaps another, or an
    /// operand: Rust lends none of them twice. A and B may be shared.
    ///
    /// # Errors
    /// [`Error::Argument`] with the field where the plan is none of two operands and a result, or one of a batch already; where there
    /// are no products, or not as many of each; and with the operand that is too short (`a[3]`). As [`Callable::call`] besides.
    pub fn call_batch<T: Element>(
        &mut self,
        a: &[&[T]],
        b: &[&[T]],
        c: &mut [&mut [T]],
        scalars: &[f64],
    ) -> Result<(), Error> {
        self.is_product()?;
        if c.is_empty() {
            return Err(refused("c", "there are no products: at least one is needed".to_owned()));
        }
        for (name, given) in [("a", a.len()), ("b", b.len())] {
            if given != c.len() {
                return Err(refused(name, format!("{given} are given, {} are needed: as many as of c", c.len())));
            }
        }
        let [of_a, of_b, of_c] = self.buffers() else { return Ok(()) };
        long_enough(of_a, a.iter().map(|x| x.len()))?;
        long_enough(of_b, b.iter().map(|x| x.len()))?;
        long_enough(of_c, c.iter().map(|x| x.len()))?;
        self.call_each(a, b, c, scalars)
    }

    /// Whether the plan is of one product: it reads two buffers and writes one.
    fn is_product(&self) -> Result<(), Error> {
        let roles: Vec<bool> = self.buffers().iter().map(|spec| spec.role == Role::In).collect();
        if roles != [true, true, false] {
            let message = "only plans with two operands and one result are called on arrays of them";
            return Err(refused("buffers", message.to_owned()));
        }
        let count = self.planned().input.get("batch").and_then(|count| count.as_int()).unwrap_or(1);
        if count > 1 {
            let message = format!("the plan is one of {count} products at constant distances: plan a single one");
            return Err(refused("batch", message));
        }
        Ok(())
    }
}

fn refused(name: &str, message: String) -> Error {
    Error::Argument { name: name.to_owned(), message }
}

/// Refuses the first that is too short.
fn long_enough(spec: &BufferSpec, lens: impl Iterator<Item = usize>) -> Result<(), Error> {
    let Some((at, len)) = lens.enumerate().find(|(_, len)| *len < spec.len) else { return Ok(()) };
    let message = format!("{len} elements are given, {} of {} are needed", spec.len, spec.dtype);
    Err(refused(&format!("{}[{at}]", spec.name), message))
}
