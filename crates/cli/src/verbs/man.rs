//! `netdyno man`: manual pages, from the definition of the options.

use crate::records::output::write_whole;
use crate::terminal::fault::Fault;
use crate::terminal::voice::note;
use crate::verbs::{Examples, examples};
use clap::{Args, Command};
use clap_mangen::Man;
use roff::{Roff, bold, roman};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "man",
    [
        ("netdyno man ~/.local/share/man/man1", "write all pages"),
        ("netdyno man . && man ./netdyno-logp.1", "read one of them"),
        ("netdyno man /usr/local/share/man/man1", "install them for all users"),
    ],
)];

/// Write the manual pages into a folder
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write netdyno.1, netdyno-logp.1 and so on into this folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes a page for the command of `definition` and one for each of its verbs.
pub fn run(args: &ManArgs, mut definition: Command) -> Result<(), Fault> {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .map_err(|error| Fault::BadInput(format!("cannot create {}: {error}", folder.display())))?;
    definition.build();
    let mut count = 0;
    for (name, command) in pages(&definition, "") {
        let page = page(&name, command)
            .map_err(|error| Fault::Failed(format!("cannot write the page of netdyno {name}: {error}")))?;
        write_whole(&folder.join(format!("{}.1", file_name(&name))), &page)?;
        count += 1;
    }
    note(&format!("wrote {count} pages to {}", folder.display()));
    Ok(())
}

/// Returns the command and its verbs, each with its words after `netdyno` on the command line.
fn pages<'a>(command: &'a Command, name: &str) -> Vec<(String, &'a Command)> {
    let mut pages = vec![(name.to_owned(), command)];
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help") {
        pages.extend(self::pages(verb, format!("{name} {}", verb.get_name()).trim_start()));
    }
    pages
}

fn file_name(name: &str) -> String {
    format!("netdyno {name}").trim_end().replace(' ', "-")
}

fn page(name: &str, command: &Command) -> io::Result<String> {
    let title = file_name(name);
    let man = Man::new(command.clone()).title(title.to_uppercase()).manual("netdyno");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    write_examples(name, &mut page)?;
    man.render_options_section(&mut page)?;
    if name.is_empty() {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_extra_section(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_examples(name: &str, page: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for (command, what) in examples(name) {
        roff.control("TP", []).text([bold(*command)]).text([roman(*what)]);
    }
    roff.to_writer(page)
}
