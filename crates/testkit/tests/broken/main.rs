//! Every check of every suite can fail: one deliberate fault each.

mod devices;
mod kernels;
mod models;
mod searches;

use tilewright_testkit::Conformity;

#[track_caller]
fn assert_breaks(result: Conformity, check: &str) {
    match result {
        Ok(()) => panic!("the fault passed; {check} should have seen it"),
        Err(violation) => assert_eq!(violation.check, check, "{violation}"),
    }
}
