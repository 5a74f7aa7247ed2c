//! Numbers of the command line: an error says what is allowed.

use std::time::Duration;

/// Reads a whole number within these limits.
pub(super) fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse::<u64>().ok().filter(|n| (least..=most).contains(n));
        let number = number.and_then(|n| T::try_from(n).ok());
        number.ok_or_else(|| format!("a whole number within {least}..={most} is expected"))
    }
}

/// Reads a number; whoever takes it knows its limits.
pub(super) fn real(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "a number is expected".to_owned())
}

/// Reads a number that is finite and not negative.
pub(super) fn ridge(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|r| r.is_finite() && *r >= 0.0);
    number.ok_or_else(|| "a finite number of 0 or more is expected".to_owned())
}

/// Reads `90s`, `2m`, `1h`, `500ms` or plain seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a time of 0 or more is expected, as 500ms, 90s, 2m, 1h or plain seconds".to_owned();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * scale).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        let top = whole::<u16>(1, 1024);
        assert_eq!((top("1"), top("1024")), (Ok(1), Ok(1024)));
        for wrong in ["0", "1025", "-1", "1.5", "x", "", "99999999999999999999"] {
            assert!(top(wrong).is_err_and(|e| e.contains("1..=1024")), "{wrong}");
        }
        assert_eq!(whole(0, u64::MAX)("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn durations() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["-1s", "-1", "5y", "", "soon", "1e300h"] {
            assert!(duration(wrong).is_err_and(|e| e.contains("90s")), "{wrong}");
        }
    }

    #[test]
    fn ridges() {
        assert_eq!((ridge("0"), ridge("1e-6")), (Ok(0.0), Ok(1e-6)));
        assert!(["nan", "inf", "-1", "x", ""].iter().all(|text| ridge(text).is_err()));
    }
}
