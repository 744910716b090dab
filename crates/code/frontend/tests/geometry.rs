//! Tests which geometries there are, and what the others' errors say.

use locklab_frontend::icache::Geometry;

#[test]
fn real_ones() {
    // Zen 2 to 5, Sandy Bridge to Raptor Cove; Golden Cove's E-cores; Zen 1;
    // Apple M1's P-cores; Neoverse N1.
    for (kib, ways, line, sets) in [
        (32, 8, 64, 64),
        (64, 8, 64, 128),
        (64, 4, 64, 256),
        (192, 6, 128, 256),
        (48, 12, 64, 64),
    ] {
        assert_eq!(Geometry::new(kib * 1024, ways, line).unwrap().sets(), sets);
    }
}

#[test]
fn errors() {
    let error = |size, ways, line| Geometry::new(size, ways, line).unwrap_err().to_string();
    assert_eq!(
        error(48 * 1024, 8, 64),
        "49152 bytes in 8 ways of 64-byte lines make 96.00 sets; \
         choose a size that gives a power of two, such as 32768"
    );
    assert_eq!(
        error(100, 1, 64),
        "100 bytes in 1 ways of 64-byte lines make 1.56 sets; \
         choose a size that gives a power of two, such as 64"
    );
    assert_eq!(
        error(0, 8, 64),
        "cache size 0 is out of range: give bytes, from 64 to 64 MiB"
    );
    assert_eq!(error(32768, 0, 64), "a cache needs at least 1 way");
    assert_eq!(
        error(32768, 8, 48),
        "line size 48 is not a power of two from 16 to 4096 bytes"
    );
    assert_eq!(
        error(u32::MAX, u32::MAX, 64),
        "cache size 4294967295 is out of range: give bytes, from 64 to 64 MiB"
    );
}
