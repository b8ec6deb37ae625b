"""Machines whose UCX is absent or of no use: gyre-perf runs, shm works, and who asks for ucx reads why there is none.

TEST_UCX_FAKES names a folder with libraries made from fake/; without it gyre was built without UCX.
"""
import os
import subprocess
import tempfile

from system import Skipped, check, needs, perf, right_rows, run, subjects

SWEEP = ("all_reduce", "-b", "8", "-e", "64", "-n", "5")


def fake(name):
    folder = os.environ.get("TEST_UCX_FAKES")
    if not folder:
        raise Skipped("built without UCX")
    return os.path.join(folder, f"lib{name}.so")


def shm_works_and_ucx_complains(env, *patterns):
    right_rows(run(*SWEEP, "--transport", "shm", env=env))
    right_rows(run(*SWEEP, env=env))
    done = run(*SWEEP, "--transport", "ucx", env=env).failed()
    for word in ("UCX cannot be used here: ", *patterns):
        check(word in done.err, f"nothing about {word}\n{done.story()}")


def instead_of_ucx(make, *patterns):
    """With the file that make(path) puts where the dynamic linker looks first."""
    with tempfile.TemporaryDirectory() as folder:
        make(os.path.join(folder, "libucp.so.0"))
        path = os.pathsep.join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH"))))
        shm_works_and_ucx_complains({"LD_LIBRARY_PATH": path}, *(pattern.replace("FOLDER", folder) for pattern in patterns))


def nothing_of_ucx_is_linked():
    needs("readelf")
    read = lambda *flags: subprocess.run(["readelf", "-W", *flags, perf()], check=True, capture_output=True, text=True).stdout
    check("NEEDED" in read("-d") and "memcpy" in read("--dyn-syms"), "readelf shows nothing")
    for library in ("libucp", "libuct", "libucs", "libucm"):
        check(library not in read("-d"), f"linked with {library}")
    for prefix in (" ucp_", " uct_", " ucs_", " ucm_"):
        check(prefix not in read("--dyn-syms"), f"a symbol that begins with{prefix} can be taken from, or for, another library")


def no_ucx_at_all():
    env = {"LD_AUDIT": fake("no-ucx")}
    if "static TLS block" in run("--help", env=env).err:
        raise Skipped("the dynamic linker's auditing leaves no room for this sanitizer")
    shm_works_and_ucx_complains(env, "cannot open shared object file: No such file or directory")


def ucx_that_is_too_old():
    library = fake("ucp-1.9")
    instead_of_ucx(lambda path: os.symlink(library, path), "UCX 1.9.0 (FOLDER/libucp.so.0) can't be used: gyre needs 1.13 or a later 1.x")


def ucx_that_lacks_a_function():
    library = fake("ucp-1.99")
    instead_of_ucx(lambda path: os.symlink(library, path), "UCX 1.99.0 (FOLDER/libucp.so.0) lacks ucp_")


def library_that_is_no_ucx():
    library = fake("no-ucx")
    instead_of_ucx(lambda path: os.symlink(library, path), "FOLDER/libucp.so.0 is no UCX: it lacks ucp_get_version")


def file_that_is_no_library():
    fake("no-ucx")
    instead_of_ucx(lambda path: open(path, "w", encoding="ascii").close(), "FOLDER/libucp.so.0: file too short")


subjects([nothing_of_ucx_is_linked, no_ucx_at_all, ucx_that_is_too_old, ucx_that_lacks_a_function, library_that_is_no_ucx,
          file_that_is_no_library])
