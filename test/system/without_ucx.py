"""Machines whose UCX is absent or of no use: gyre-perf runs, shm works, and who asks for ucx reads why there is none.

TEST_UCX_FAKES names a folder with libraries made from fake/; without it gyre was built without UCX.
"""
import contextlib
import os
import re
import subprocess
import tempfile

from system import Skipped, check, fake_ucx, needs, perf, right_rows, run, subjects

SWEEP = ("all_reduce", "-b", "8", "-e", "64", "-n", "5")


def shm_works_and_ucx_complains(env, *patterns):
    right_rows(run(*SWEEP, "--transport", "shm", env=env))
    right_rows(run(*SWEEP, env=env))
    done = run(*SWEEP, "--transport", "ucx", env=env).failed()
    for word in ("UCX cannot be used here: ", *patterns):
        check(word in done.err, f"nothing about {word}\n{done.story()}")


@contextlib.contextmanager
def found_first(make):
    """What make(path) puts there is what the dynamic linker finds as UCX; the folder, and the environment for it."""
    with tempfile.TemporaryDirectory() as folder:
        make(os.path.join(folder, "libucp.so.0"))
        yield folder, {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH"))))}


def instead_of_ucx(make, *patterns):
    with found_first(make) as (folder, env):
        shm_works_and_ucx_complains(env, *(pattern.replace("FOLDER", folder) for pattern in patterns))


def nothing_of_ucx_is_linked():
    needs("readelf")
    read = lambda *flags: subprocess.run(["readelf", "-W", *flags, perf()], check=True, capture_output=True, text=True).stdout
    check("NEEDED" in read("-d") and "memcpy" in read("--dyn-syms"), "readelf shows nothing")
    for library in ("libucp", "libuct", "libucs", "libucm"):
        check(library not in read("-d"), f"linked with {library}")
    for prefix in (" ucp_", " uct_", " ucs_", " ucm_"):
        check(prefix not in read("--dyn-syms"), f"a symbol that begins with{prefix} can be taken from, or for, another library")


def no_ucx_at_all():
    env = {"LD_AUDIT": fake_ucx("no-ucx")}
    if "static TLS block" in run("--help", env=env).err:
        raise Skipped("the dynamic linker's auditing leaves no room for this sanitizer")
    shm_works_and_ucx_complains(env, "cannot open shared object file: No such file or directory")


def ucx_that_is_too_old():
    library = fake_ucx("ucp-1.9")
    instead_of_ucx(lambda path: os.symlink(library, path), "UCX 1.9.0 (FOLDER/libucp.so.0) can't be used: gyre needs 1.13 or a later 1.x")


def ucx_that_lacks_a_function():
    library = fake_ucx("ucp-1.99")
    instead_of_ucx(lambda path: os.symlink(library, path), "UCX 1.99.0 (FOLDER/libucp.so.0) lacks ucp_")


def library_that_is_no_ucx():
    library = fake_ucx("no-ucx")
    instead_of_ucx(lambda path: os.symlink(library, path), "FOLDER/libucp.so.0 is no UCX: it lacks ucp_get_version")


def file_that_is_no_library():
    fake_ucx("no-ucx")
    instead_of_ucx(lambda path: open(path, "w", encoding="ascii").close(), "FOLDER/libucp.so.0: file too short")


def loaded_by_whom_it_serves_and_before_any_thread():
    """UCX, as it is loaded, overwrites the beginnings of mmap() and its like: a thread that is there then crashes."""
    library = fake_ucx("ucp-1.9")
    with found_first(lambda path: os.symlink(library, path)) as (_, env):
        loads = lambda *flags, **more: re.findall("UCX is loaded beside .*", run(*SWEEP, *flags, env={**env, **more}).err)
        if not os.path.isdir("/sys/class/infiniband"):
            check(loads() == [], "UCX is loaded where tcp is as good")
        check(loads("--transport", "shm", GYRE_FALLBACK="tcp") == [], "UCX is loaded for shm")
        if "UCX_MEM_EVENTS" in os.environ:
            raise Skipped("a sanitizer has threads of its own")
        for flags, more in ((("--transport", "ucx"), {}), ((), {"UCX_TLS": "tcp,self"}), (("-T", "60"), {"UCX_TLS": "tcp,self"})):
            said = loads(*flags, **more)
            check(said == ["UCX is loaded beside 0 other threads"] * 2, f"{flags} {more}: {said}")


subjects([nothing_of_ucx_is_linked, no_ucx_at_all, ucx_that_is_too_old, ucx_that_lacks_a_function, library_that_is_no_ucx,
          file_that_is_no_library, loaded_by_whom_it_serves_and_before_any_thread])
