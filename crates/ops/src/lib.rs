//! The computations that Tilewright tunes: input types, workloads, references and error bounds.
