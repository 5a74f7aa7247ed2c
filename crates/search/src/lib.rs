//! Search over parameter spaces: exhaustive over a model, streaming, keeping the top k.
