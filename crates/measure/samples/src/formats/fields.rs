//! The fields of JSON files.

use serde_json::Value;

/// Returns a number of a JSON field; one that is missing, or no number, is not a number.
pub(super) fn number(value: Option<&Value>) -> f64 {
    value.and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// Returns the numbers of a JSON list.
pub(super) fn numbers(value: Option<&Value>) -> Vec<f64> {
    let list = value.and_then(Value::as_array);
    let of = |list: &Vec<Value>| list.iter().map(|x| number(Some(x))).collect();
    list.map(of).unwrap_or_default()
}

/// Returns the text of a JSON field, or nothing.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the value at the end of a path of fields.
pub(super) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// Returns the parameters of a benchmark as its name has them: `" n=8 x=1"`.
pub(super) fn parameters(entry: &Value, field: &str) -> String {
    let all = entry.get(field).and_then(Value::as_object);
    let one = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or(value.to_string(), str::to_owned);
        format!(" {name}={value}")
    };
    all.into_iter().flatten().map(one).collect()
}

/// Returns the seconds since 1970 of a date such as `2026-11-26T14:00:00+01:00`.
pub(super) fn moment(date: &str) -> Option<f64> {
    let (day, rest) = date.split_once(['T', ' '])?;
    let mut day = day.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (day.next()??, day.next()??, day.next()??);
    let zone_at = rest.find(['+', '-', 'Z']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    let mut clock = clock.split(':');
    let hour: f64 = clock.next()?.parse().ok()?;
    let minute: f64 = clock.next()?.parse().ok()?;
    let second: f64 = clock.next().map_or(Some(0.0), |s| s.trim().parse().ok())?;
    let offset = match zone.strip_prefix(['+', '-']) {
        None => 0.0,
        Some(ahead) => {
            let (hours, minutes) = ahead.split_once(':').unwrap_or((ahead, "0"));
            let ahead = 3600.0 * hours.parse::<f64>().ok()? + 60.0 * minutes.parse::<f64>().ok()?;
            if zone.starts_with('-') { -ahead } else { ahead }
        }
    };
    Some(days(year, month, day) * 86_400.0 + 3600.0 * hour + 60.0 * minute + second - offset)
}

/// Returns the seconds since 1970 of a date as the C library writes it, such as
/// `Sat Nov 28 09:00:00 2026`; its zone is not known.
pub(super) fn moment_of_c(date: &str) -> Option<f64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = date.split_whitespace().skip(1);
    let (month, day, clock, year) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.find(month).filter(|_| month.len() == 3)? / 3 + 1;
    moment(&format!("{year}-{month}-{day} {clock}"))
}

/// Returns the days since 1970 of a day of the civil calendar.
fn days(year: i64, month: i64, day: i64) -> f64 {
    // These are days from 1970 by the civil calendar, whose years begin in March here.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days =
        365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day
            - 1
            - 719_468;
    days as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_their_zone() {
        assert_eq!(moment("1970-01-01T00:00:00"), Some(0.0));
        assert_eq!(moment("2000-03-01T00:00:00Z"), Some(951_868_800.0));
        assert_eq!(
            moment("2026-11-26T14:00:00+01:00"),
            moment("2026-11-26 13:00:00")
        );
        assert_eq!(
            moment("2026-11-26T13:00:00.5"),
            moment("2026-11-26T13:00:00").map(|t| t + 0.5)
        );
        assert_eq!(
            moment_of_c("Sat Nov 28 09:00:00 2026"),
            moment("2026-11-28T09:00:00")
        );
        for wrong in ["", "yesterday", "2026-11", "2026-11-26Tx"] {
            assert_eq!(moment(wrong), None);
        }
    }
}
