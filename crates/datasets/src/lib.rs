//! Measurements on disk and in memory: datasets, splits, training sets, and the device that replays them.
//!
//! A dataset is a CSV table with a JSON sidecar that says what the columns are:
//!
//! ```
//! use std::path::Path;
//! use tilewright_datasets::Dataset;
//!
//! let table = b"gpu,n,tile,ms,ok\nA,100,8,0.5,1\nA,100,16,,0\nA,200,8,0.9,1\n";
//! let sidecar = br#"{
//!     "format": "tilewright-dataset", "version": 1,
//!     "columns": {
//!         "device": "gpu", "input": ["n"], "config": ["tile"], "variant": null,
//!         "time": {"column": "ms", "unit": "ms"}, "status": {"column": "ok", "ok": 1}
//!     },
//!     "derived": {"tiles": "ceil(n / tile)"}
//! }"#;
//! let dataset = Dataset::parse(table, sidecar, Path::new("example.csv"))?;
//! assert_eq!(dataset.describe().failures, 1);
//! let rows = dataset.training_set()?;
//! assert_eq!(rows.costs, [0.0005, 0.0009]);
//! assert_eq!(rows.row(0), [100.0, 8.0, 13.0]);
//! # Ok::<(), tilewright_datasets::DatasetError>(())
//! ```

mod choices;
mod clblast;
mod column;
mod dataset;
mod describe;
mod error;
mod export;
mod features;
mod foreign;
mod from_choices;
mod kernel_tuner;
mod ktt;
mod open;
mod read;
mod record;
mod replay;
mod schema;
mod split;
mod write;

pub use column::Column;
pub use dataset::{Dataset, Summary};
pub use describe::{ColumnSummary, Fastest};
pub use error::{DatasetError, Place};
pub use export::{Export, ExportOf, Format};
pub use features::FeatureTable;
pub use record::Record;
pub use replay::{RecordedKernel, RecordedProblem, Replay};
pub use schema::{Columns, DatasetSchema, Status, Time, TimeUnit};
pub use split::{DeviceSplit, Split, SplitParseError, SplitSpec};
