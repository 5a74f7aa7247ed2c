//! Reads and writes Tilewright datasets; the replay device.
