//! What two ELF files hold, symbol by symbol, old against new.
