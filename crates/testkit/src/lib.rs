//! Conformance suites for implementations of the traits of Tilewright. For tests only.
