//! Expands arguments to input files: directories, patterns, standard input.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use abgauge_core::engine::event::Kind;
use anyhow::{Context as _, bail};

use crate::tools::cli::CountArgs;

/// Bound on the files of one run.
const MAX_FILES: usize = 100_000;

/// File of events, with their kind if it has only one.
pub(super) type InputFile = (Option<Kind>, PathBuf);

/// Returns the files of an evaluation: first files of both kinds, then of lists, then of clicks.
///
/// # Errors
/// Fails like [`files`].
pub(super) fn of_both_kinds(args: &CountArgs) -> anyhow::Result<Vec<InputFile>> {
    let has_kinds = !args.lists.is_empty() || !args.clicks.is_empty();
    let of_kinds = [
        (None, &args.files, "evaluate -"),
        (Some(Kind::Served), &args.lists, "evaluate --lists -"),
        (Some(Kind::Click), &args.clicks, "evaluate --clicks -"),
    ];
    let mut all = Vec::new();
    for (kind, arguments, reader) in of_kinds {
        // Without any argument, the files of both kinds are standard input.
        if !arguments.is_empty() || (kind.is_none() && !has_kinds) {
            all.extend(files(arguments, reader)?.into_iter().map(|path| (kind, path)));
        }
    }
    Ok(all)
}

/// Expands arguments to files, in the order of the arguments, and by name within each. A directory stands for all files below it
/// whose names do not begin with `.` or `_`: Spark and Hive write such files next to data. Without an argument, returns standard
/// input, unless it is a terminal. `reader` is the command that reads them from standard input.
///
/// # Errors
/// Fails if an argument matches no file or is an address, or if there are too many files.
pub(super) fn files(arguments: &[PathBuf], reader: &str) -> anyhow::Result<Vec<PathBuf>> {
    if arguments.is_empty() {
        if io::stdin().is_terminal() {
            bail!("no input: name files or directories of events, or pipe them to standard input");
        }
        return Ok(vec![PathBuf::from("-")]);
    }
    let mut files = Vec::new();
    for argument in arguments {
        add(argument, reader, &mut files)?;
    }
    Ok(files)
}

fn add(argument: &Path, reader: &str, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let text = argument.to_string_lossy();
    let n_before = files.len();
    // A file whose name is also a pattern is that file.
    if text == "-" || argument.exists() {
        add_path(argument, &mut Vec::new(), files)?;
    } else if let Some((scheme, _)) = text.split_once("://") {
        bail!("{}", remedy(scheme, &text, reader));
    } else if text.contains(['*', '?', '[']) {
        let paths = glob::glob(&text).with_context(|| format!("{text} is not a pattern of files"))?;
        for path in paths {
            add_path(&path?, &mut Vec::new(), files)?;
        }
    } else {
        // Opening it reports why it cannot be read.
        files.push(argument.to_owned());
    }
    if files.len() == n_before {
        bail!("open {text}: there is no file to read");
    }
    Ok(())
}

/// Adds a file, or all files below a directory that is inside of the directories `around`.
fn add_path(path: &Path, around: &mut Vec<PathBuf>, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        if files.len() == MAX_FILES {
            bail!("more than {MAX_FILES} files: name fewer");
        }
        files.push(path.to_owned());
        return Ok(());
    }
    let in_context = || format!("open {}", path.display());
    let real = path.canonicalize().with_context(in_context)?;
    if around.contains(&real) {
        bail!("open {}: it links to a directory around it", path.display());
    }
    around.push(real);
    let entries = path.read_dir().with_context(in_context)?;
    let mut inner = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<PathBuf>>>()
        .with_context(in_context)?;
    inner.sort();
    let is_data = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        !name.is_some_and(|name| name.starts_with(['.', '_']))
    };
    inner
        .iter()
        .filter(|path| is_data(path))
        .try_for_each(|path| add_path(path, around, files))?;
    around.pop();
    Ok(())
}

/// Returns an error for an address, with the command that copies or reads it.
fn remedy(scheme: &str, address: &str, reader: &str) -> String {
    let scheme = scheme.to_lowercase();
    let rest = &address[scheme.len()..];
    if let Some(path) = rest.strip_prefix("://").filter(|_| scheme == "file") {
        return format!("{address} is an address: write the path of the file instead: {path}");
    }
    let fault = format!("{address} is an address, and only files are read: copy it to a file first");
    let (copy, pipe) = match &*scheme {
        "http" | "https" => (["curl --fail --remote-name", ""], ["curl --fail --silent", ""]),
        "s3" => (["aws s3 cp", " ."], ["aws s3 cp", " -"]),
        "gs" => (["gcloud storage cp", " ."], ["gcloud storage cat", ""]),
        "hdfs" => (["hdfs dfs -get", ""], ["hdfs dfs -cat", ""]),
        _ => return fault,
    };
    let command = |[start, end]: [&str; 2]| format!("{start} '{scheme}{rest}'{end}");
    let path = rest.split('?').next().unwrap_or_default().to_lowercase();
    // A directory is not one file, and Parquet is read from its end.
    match (path.ends_with('/'), path.ends_with(".parquet")) {
        (true, _) => fault,
        (false, true) => format!("{fault} (Parquet cannot be piped): {}", command(copy)),
        (false, false) => format!("{fault}, or pipe it: {} | abgauge {reader}", command(pipe)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &[&str], folder: &Path) -> Result<Vec<String>, String> {
        let arguments: Vec<PathBuf> = arguments.iter().map(|argument| folder.join(argument)).collect();
        let files = files(&arguments, "evaluate -").map_err(|error| format!("{error:#}"))?;
        let relative = files
            .iter()
            .map(|file| file.strip_prefix(folder).unwrap_or(file).display().to_string());
        Ok(relative.collect())
    }

    #[test]
    fn directories_and_patterns_mean_their_files_in_order() {
        let dir = tempfile::tempdir().expect("a directory");
        for file in [
            "day=2/b.jsonl",
            "day=1/a.jsonl",
            "day=1/_SUCCESS",
            "day=1/.a.crc",
            "odd[1].jsonl",
            "z.jsonl",
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, "").expect("a file");
        }
        std::fs::create_dir(dir.path().join("empty")).expect("a directory");
        let check = |arguments: &[&str], expected: &[&str]| {
            assert_eq!(
                names(arguments, dir.path()),
                Ok(expected.iter().map(ToString::to_string).collect())
            );
        };
        check(
            &["."],
            &["day=1/a.jsonl", "day=2/b.jsonl", "odd[1].jsonl", "z.jsonl"],
        );
        check(&["day=*"], &["day=1/a.jsonl", "day=2/b.jsonl"]);
        check(&["**/b.jsonl", "z.jsonl"], &["day=2/b.jsonl", "z.jsonl"]);
        check(&["odd[1].jsonl"], &["odd[1].jsonl"]);
        // Its error comes from opening it.
        check(&["absent.jsonl"], &["absent.jsonl"]);
        for nothing in ["empty", "day=3*"] {
            let error = names(&[nothing], dir.path()).expect_err(nothing);
            assert!(error.ends_with("there is no file to read"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_directory_around_it_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("again")).expect("a link");
        let error = names(&["."], dir.path()).expect_err("a loop");
        assert!(error.ends_with("it links to a directory around it"), "{error}");
    }

    #[test]
    fn addresses_are_refused_with_the_command_that_reads_them() {
        const ONLY_FILES: &str = "is an address, and only files are read: copy it to a file first";
        for (address, reader, remedy) in [
            (
                "s3://logs/day=1/a.jsonl",
                "evaluate -",
                ", or pipe it: aws s3 cp 's3://logs/day=1/a.jsonl' - | abgauge evaluate -",
            ),
            (
                "S3://logs/a.jsonl",
                "evaluate --lists -",
                ", or pipe it: aws s3 cp 's3://logs/a.jsonl' - | abgauge evaluate --lists -",
            ),
            (
                "s3://logs/a.PARQUET",
                "evaluate --lists -",
                " (Parquet cannot be piped): aws s3 cp 's3://logs/a.PARQUET' .",
            ),
            (
                "https://a/b.parquet?sign=1",
                "evaluate -",
                " (Parquet cannot be piped): curl --fail --remote-name 'https://a/b.parquet?sign=1'",
            ),
            ("gs://logs/day=1/", "evaluate -", ""),
            ("az://logs/a.jsonl", "evaluate -", ""),
        ] {
            let error = files(&[PathBuf::from(address)], reader).expect_err("an address");
            assert_eq!(error.to_string(), format!("{address} {ONLY_FILES}{remedy}"));
        }
        let error = files(&[PathBuf::from("file:///logs/absent")], "evaluate -").expect_err("an address");
        assert_eq!(
            error.to_string(),
            "file:///logs/absent is an address: write the path of the file instead: /logs/absent"
        );
    }
}
