//! The fields of `count`.

use clap::Args;

#[derive(Clone, Debug, Args)]
pub(crate) struct CountArgs {
    /// The kernel; ragged is one whose trip counts stand in its data, the product of a ragged matrix with a vector.
    pub kernel: String,
    /// key=value fields.
    #[arg(value_name = "INPUT")]
    pub input: Vec<String>,
    /// What the code is for.
    #[arg(long, value_name = "SM", default_value = "sm_90")]
    pub target: String,
    /// Which of the computation's kernels, by its own name; unless given, the one that takes the input and suits it best.
    #[arg(long, value_name = "V")]
    pub variant: Option<String>,
    /// Parameters as k=v,k=v, as for `emit`.
    #[arg(long, value_name = "K=V,...")]
    pub config: Option<String>,
    /// What is known of the data that control depends on, for example --statistic NAME.trips=12; those that are needed are
    /// named where one is missing. Several may be given.
    #[arg(long, value_name = "NAME=VALUE", value_parser = statistic)]
    pub statistic: Vec<(String, i64)>,
}

/// A number, not negative, that the data of an input tell and its sizes do not, by the name that the counter asks for.
fn statistic(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or("NAME=VALUE is expected")?;
    let known = value.parse().ok().filter(|value: &i64| *value >= 0);
    let value = known.ok_or_else(|| format!("{value:?} is no whole number of 0 or more"))?;
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_have_a_name_and_a_number() {
        assert_eq!(statistic("k/when[4].threads=12"), Ok(("k/when[4].threads".into(), 12)));
        for wrong in ["", "k", "=3", "k=", "k=-1", "k=1.5", "k=99999999999999999999"] {
            assert!(statistic(wrong).is_err(), "{wrong}");
        }
    }
}
