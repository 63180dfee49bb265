//! `netdyno completions`: the completion scripts of shells, from the definition of the options.

use crate::records::output::write_stdout;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell as Generator, generate};

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "completions",
    [
        ("netdyno completions bash >/etc/bash_completion.d/netdyno", "for bash"),
        ("netdyno completions zsh >~/.zfunc/_netdyno", "for zsh"),
        ("netdyno completions fish >~/.config/fish/completions/netdyno.fish", "for fish"),
    ],
)];

/// Print the completions of a shell
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Print the completions of this shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// To be sourced, or put into bash_completion.d
    Bash,
    /// To be put into a folder of $fpath, as _netdyno
    Zsh,
    /// To be put into ~/.config/fish/completions
    Fish,
}

/// Prints the completion script of `definition` for a shell.
pub fn run(args: &CompletionsArgs, mut definition: Command) -> Result<(), Fault> {
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    generate(generator, &mut definition, "netdyno", &mut script);
    write_stdout(&String::from_utf8_lossy(&script))
}
