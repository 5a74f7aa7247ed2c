//! Why a campaign ends early.

use super::CampaignKind;
use tilewright_core::program::DeviceError;
use tilewright_core::text::counted;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::store::StoreError;

/// Why a campaign ends early. What was measured before is in its folder.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file of the folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder holds the results of something else.
    #[error("{file}: {what} is {found:?}, this campaign's is {expected:?}; choose another folder")]
    Other {
        /// The file that tells.
        file: String,
        /// What differs.
        what: &'static str,
        /// In the file.
        found: String,
        /// Of this run.
        expected: String,
    },
    /// The folder holds the results of another device.
    #[error("{file}: it was measured on {found}, this device is {expected} ({differs}); choose another folder")]
    OtherDevice {
        /// The file that tells.
        file: String,
        /// Name and driver in the file.
        found: String,
        /// Name and driver of this run.
        expected: String,
        /// What differs, each with both values.
        differs: String,
    },
    /// The folder holds the other kind of campaign, or does not say which.
    #[error("{folder}: {}; choose another --out", found.map_or_else(
        || "its campaign.json is of an older version and does not say whether it is a real campaign or a rehearsal, and too \
             little was done to tell (whoever knows may add \"kind\": \"real\" or \"kind\": \"rehearsal\" to it)".to_owned(),
        |kind| format!("it holds a {kind} campaign, and this is a {expected} one: each would count the other's work as done"),
    ))]
    OtherKind {
        /// The folder.
        folder: String,
        /// What it holds; None if nobody can tell.
        found: Option<CampaignKind>,
        /// Of this run.
        expected: CampaignKind,
    },
    /// A file that cannot be read.
    #[error("{file}: {message}")]
    Damaged {
        /// Which.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// Configurations of a task ran, and none gave the right result.
    #[error("{task}: none of {} gave the right result; the last: {last}", counted(.tried, "configuration"))]
    NothingRight {
        /// The task.
        task: String,
        /// How many were timed.
        tried: usize,
        /// What was wrong with the last.
        last: String,
    },
    /// What a stage ran failed, so that nothing that is measured here would prove anything.
    #[error("{stage}: {failed} of {} failed, so nothing that is measured here would prove anything; the first: {first}", counted(.of, .what))]
    Unsound {
        /// The stage.
        stage: &'static str,
        /// How many failed.
        failed: u64,
        /// Of how many.
        of: u64,
        /// What they are: `kernel`, `case`.
        what: &'static str,
        /// What failed first, and how.
        first: String,
    },
    /// Fitting or drawing.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The device failed for good.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
