//! Measuring, verifying, storing and dispatching plans: what ties the parts of Tilewright together.
