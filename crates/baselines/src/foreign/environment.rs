//! Variables that libraries read when they are opened.

/// Why variables were not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("variables can only be set before other threads run, and where the system says how many do")]
pub(crate) struct NotAlone;

/// Sets variables of this process.
///
/// # Errors
/// Other threads run, or it cannot be told; then nothing is set.
pub(crate) fn set_variables<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), NotAlone> {
    let mut variables = variables.into_iter().peekable();
    if variables.peek().is_none() {
        return Ok(());
    }
    if threads() != Some(1) {
        return Err(NotAlone);
    }
    for (name, value) in variables {
        // SAFETY: no other thread reads or writes the environment meanwhile: this thread is the only one of the process, and it
        // begins none here.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(())
}

/// How many threads this process has, where the system tells.
fn threads() -> Option<usize> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    Some(tasks.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_other_threads_nothing_is_set() {
        // The test harness runs this in a thread beside its own.
        assert_eq!(set_variables([("TILEWRIGHT_TEST_OF_VARIABLES", "1")]), Err(NotAlone));
        assert!(std::env::var_os("TILEWRIGHT_TEST_OF_VARIABLES").is_none());
        assert_eq!(set_variables([]), Ok(()));
    }
}
