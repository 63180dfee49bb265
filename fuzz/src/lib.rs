//! Code that several fuzz targets share.

pub mod datagram;
