//! Top-down level 1: the events that give the share of slots that the front end
//! left empty. Intel's are named by the kernel in /sys; AMD's from Zen 4 on
//! are by its manual (PPR, "dispatch slots").

/// Two raw events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Events {
    /// The number of the event that counts slots, or cycles where there is none for
    /// slots.
    pub(super) slots: u64,
    /// Number of slots per count of `slots`.
    pub(super) slots_each: f64,
    /// Slots that the front end left empty.
    pub(super) empty: u64,
}

/// Returns the events of this processor, if they are known.
pub(super) fn events() -> Option<Events> {
    let named = |name: &str| {
        let path = format!("/sys/bus/event_source/devices/cpu/events/{name}");
        config(&std::fs::read_to_string(path).ok()?)
    };
    for (slots, empty) in [
        ("slots", "topdown-fe-bound"),
        ("topdown-total-slots", "topdown-fetch-bubbles"),
    ] {
        if let (Some(slots), Some(empty)) = (named(slots), named(empty)) {
            return Some(Events {
                slots,
                slots_each: 1.0,
                empty,
            });
        }
    }
    amd()
}

/// Returns `event=0x9c,umask=0x1` as a raw configuration; unknown terms
/// are never guessed.
fn config(text: &str) -> Option<u64> {
    let mut config = 0;
    for part in text.trim().split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, "1"));
        let value = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => value.parse().ok()?,
        };
        config |= match name {
            "event" => value & 0xff,
            "umask" => value << 8,
            "any" => value << 21,
            "cmask" => value << 24,
            _ => return None,
        };
    }
    Some(config)
}

#[cfg(target_arch = "x86_64")]
fn amd() -> Option<Events> {
    let cpuid = raw_cpuid::CpuId::new();
    let amd = cpuid.get_vendor_info()?.as_str() == "AuthenticAMD";
    let feature = cpuid.get_feature_info()?;
    let (family, model) = (feature.family_id(), feature.model_id());
    // Zen 4 is family 19h from models 10h and 60h on, Zen 5 is family 1Ah.
    let zen4 = family == 0x19 && ((0x10..0x20).contains(&model) || model >= 0x60);
    let width = match family {
        _ if !amd => return None,
        0x1a => 8.0,
        _ if zen4 => 6.0,
        _ => return None,
    };
    Some(Events {
        // Cycles not in halt; de_no_dispatch_per_slot.no_ops_from_frontend,
        // event 1A0h with its ninth bit at 32.
        slots: 0x76,
        slots_each: width,
        empty: 0xa0 | 0x01 << 8 | 1 << 32,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn amd() -> Option<Events> {
    None
}

#[cfg(test)]
mod tests {
    use super::config;

    #[test]
    fn configurations_are_read_and_never_guessed() {
        assert_eq!(config("event=0x9c,umask=0x1\n"), Some(0x19c));
        assert_eq!(config("event=0x3c,umask=0x0,any=1"), Some(0x20_003c));
        assert_eq!(config("event=0x00,umask=0x4"), Some(0x400));
        assert_eq!(config("event=0x9c,ldlat=3"), None);
    }
}
