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
    Some(days as f64 * 86_400.0 + 3600.0 * hour + 60.0 * minute + second - offset)
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
        for wrong in ["", "yesterday", "2026-11", "2026-11-26Tx"] {
            assert_eq!(moment(wrong), None);
        }
    }
}
