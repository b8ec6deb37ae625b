"""Started by mpirun, torchrun or srun, gyre-perf finds rank, size and rank 0 by itself; two jobs on a machine do not meet."""
import os
import re
import socket

from system import Process, Skipped, await_that, check, free_port, needs, perf, right_rows, run, start, subjects

FLAGS = ["-e", "64K", "-f", "8", "-n", "3", "-w", "1"]


def ranks_said(process, size):
    found = right_rows(process)
    check(f"ranks {size}," in process.out, f"the head does not say {size} ranks\n{process.story()}")
    check(process.out.count("(elements)") == 1, f"more than one rank shows the table: they run apart\n{process.story()}")
    return found


def mpirun(program, *words):
    """Options of both kinds that let root and more ranks than processors be."""
    needs(program)
    flags = ["--allow-run-as-root", "--oversubscribe"] if program == "mpirun.openmpi" else []
    return Process([program, *flags, *words])


def by_mpirun(program):
    for size in (1, 2, 3):
        run = mpirun(program, "-n", size, perf(), "all_reduce", *FLAGS).wait()
        ranks_said(run.passed(), size)
    run = mpirun(program, "-n", 3, perf(), "gather", "-r", 2, *FLAGS).wait()
    check({row.root for row in ranks_said(run.passed(), 3)} == {2}, f"not from root 2\n{run.story()}")
    run = mpirun(program, "-n", 2, perf(), "all_reduce", "--ranks", 3, *FLAGS).wait()
    check(run.code != 0 and "--ranks 3" in run.err and "started 2" in run.err, f"--ranks against mpirun's -n\n{run.story()}")


def twice_by_mpirun(program):
    jobs = [mpirun(program, "-n", 2 + i, perf(), "all_reduce", *FLAGS) for i in range(2)]
    for i, job in enumerate(jobs):
        ranks_said(job.wait().passed(), 2 + i)


def mpirun_of_open_mpi():
    by_mpirun("mpirun.openmpi")


def mpirun_of_mpich():
    by_mpirun("mpirun.mpich")


def two_jobs_of_open_mpi():
    twice_by_mpirun("mpirun.openmpi")


def two_jobs_of_mpich():
    twice_by_mpirun("mpirun.mpich")


def as_torchrun(rank, size, port, run_id="none", address="127.0.0.1", restarts=0):
    return {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": address, "MASTER_PORT": port,
            "TORCHELASTIC_RUN_ID": run_id, "TORCHELASTIC_RESTART_COUNT": restarts}


def as_srun(rank, size, job, step=0, nodes="localhost"):
    return {"SLURM_PROCID": rank, "SLURM_NTASKS": size, "SLURM_STEP_NUM_TASKS": size, "SLURM_LOCALID": rank, "SLURM_JOB_ID": job,
            "SLURM_STEP_ID": step, "SLURM_STEP_NODELIST": nodes, "SLURM_NODELIST": nodes}


def start_job(environments):
    return [start("all_reduce", *FLAGS, env=env) for env in environments]


def passes(job):
    for rank in job:
        rank.wait().passed()
    ranks_said(job[0], len(job))
    check(all(rank.out == "" for rank in job[1:]), "more than rank 0 shows the table\n" + "\n".join(rank.story() for rank in job))


class Store:
    """torchrun's own: it holds MASTER_PORT as long as the job runs."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.socket.getsockname()[1]

    def __enter__(self):
        return self.port

    def __exit__(self, *_):
        self.socket.close()


def torchrun():
    for size in (1, 2, 3):
        with Store() as port:
            passes(start_job(as_torchrun(rank, size, port) for rank in range(size)))


def torchrun_with_more_ports_in_use():
    with Store() as port, socket.create_server(("0.0.0.0", port + 1)), socket.create_server(("127.0.0.1", port + 2)):
        passes(start_job(as_torchrun(rank, 3, port) for rank in range(3)))


def torchrun_that_starts_rank_0_last():
    with Store() as port:
        job = start_job(as_torchrun(rank, 3, port) for rank in (2, 1, 0))
        passes(job[::-1])


def two_jobs_of_torchrun_with_neighbouring_ports():
    with Store() as port:
        jobs = [start_job(as_torchrun(rank, size, port, name) for rank in range(size)) for name, size in (("one", 2), ("two", 3))]
        for job in jobs:
            passes(job)


def a_job_of_torchrun_that_was_restarted():
    """Ranks of the first try that are still about do not get into the second."""
    with Store() as port:
        late = start("all_reduce", *FLAGS, env={**as_torchrun(1, 2, port), "GYRE_TIMEOUT": 3})
        passes(start_job(as_torchrun(rank, 2, port, restarts=1) for rank in range(2)))
        late.wait().complains("rank 1")


def srun():
    for size in (1, 2, 3):
        for nodes in ("localhost", "localhost,never-asked[001-002]"):
            passes(start_job(as_srun(rank, size, 1000 + os.getpid() % 1000, size, nodes) for rank in range(size)))


def two_jobs_and_two_steps_of_srun():
    base = 5000 + os.getpid() % 1000
    jobs = [start_job(as_srun(rank, size, base + job, step) for rank in range(size))
            for job, step, size in ((0, 0, 2), (0, 1, 3), (1, 0, 2))]
    for job in jobs:
        passes(job)


def jobs_whose_ids_lead_to_the_same_port():
    """Ranks find the port from the job's id; two ids with the same port are searched for, by the hash that transport/launch.cpp has."""
    def first_port(job):
        value = 14695981039346656037
        for byte in f"slurm {job}.0".encode():
            value = ((value ^ byte) * 1099511628211) % (1 << 64)
        return 20000 + value % 9992
    ports = {}
    for job in range(7000 + os.getpid() % 1000, 100000):
        other = ports.setdefault(first_port(job), job)
        if other != job:
            break
    jobs = [start_job(as_srun(rank, 2, number) for rank in range(2)) for number in (other, job)]
    for ranks in jobs:
        passes(ranks)


def a_script_of_sbatch_is_no_rank():
    job = start("all_reduce", "--ranks", 2, *FLAGS, env={"SLURM_PROCID": 0, "SLURM_NTASKS": 4, "SLURM_JOB_ID": 1})
    ranks_said(job.wait().passed(), 2)


def root_is_stronger_than_the_launcher():
    with Store() as port:
        there = f"127.0.0.1:{free_port()}"
        passes(start_job({**as_torchrun(rank, 2, port, address="no-such-host.invalid"), "GYRE_ROOT": there} for rank in range(2)))


def many_jobs_at_once():
    with Store() as port:
        jobs = [start_job(as_torchrun(rank, 2, port, f"job {number}") for rank in range(2)) for number in range(6)]
        for job in jobs:
            passes(job)


def own_name():
    """srun names the node, not localhost."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        raise Skipped(f"{name} does not resolve") from None
    passes(start_job(as_srun(rank, 2, 9000 + os.getpid() % 1000, nodes=name) for rank in range(2)))


def manifest(text):
    """Of the guide's manifest for Kubernetes: how many pods there are, and the environment that each of them gets but for its rank."""
    text = text.split("```yaml")[1].split("```")[0]
    env = dict(re.findall(r'- name: (GYRE_\w+).*\n +value: "?([^"\n]+)', text))
    return int(re.search(r"completions: (\d+)", text)[1]), env


def listened_to(port):
    listening = re.compile(rf"^ *\d+: \w+:{port:04X} \w+:0000 0A ", re.M)
    return any(listening.search(open(f"/proc/net/{table}", encoding="ascii").read()) for table in ("tcp", "tcp6") if os.path.exists(f"/proc/net/{table}"))


def pods_of_kubernetes():
    """One of them pulls its image while the others wait."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../doc/launching.md"), encoding="utf-8") as guide:
        size, env = manifest(guide.read())
    check(env["GYRE_SIZE"] == str(size) and env["GYRE_ROOT"] == "gyre-perf-0.gyre-perf:29500", f"{size} pods: {env}")
    patience = run("--options", env=env).passed().out.split("GYRE_TIMEOUT")[1].split()
    check(int(patience[0]) >= 300 and patience[1] == "environment", f"pods wait {patience[0]} s for each other: less than an image may take")
    port = free_port()
    job = {rank: start("all_reduce", *FLAGS, env={**env, "GYRE_RANK": rank, "GYRE_ROOT": f"127.0.0.1:{port}"}) for rank in (0, 1, 3)}
    await_that(lambda: listened_to(port), "rank 0 does not wait for others")
    job[2] = start("all_reduce", *FLAGS, env={**env, "GYRE_RANK": 2, "GYRE_ROOT": f"127.0.0.1:{port}"})
    passes([job[rank] for rank in range(size)])


def real_torchrun():
    needs("torchrun")
    with Store() as port:
        free = port
    run = Process(["torchrun", "--nproc-per-node", "2", "--master-port", free, "--no-python", perf(), "all_reduce", *FLAGS]).wait(120)
    check(run.code == 0, run.story())
    ranks_said(run, 2)


subjects([mpirun_of_open_mpi, mpirun_of_mpich, two_jobs_of_open_mpi, two_jobs_of_mpich, torchrun, torchrun_with_more_ports_in_use,
          torchrun_that_starts_rank_0_last, two_jobs_of_torchrun_with_neighbouring_ports, a_job_of_torchrun_that_was_restarted, srun,
          two_jobs_and_two_steps_of_srun, jobs_whose_ids_lead_to_the_same_port, a_script_of_sbatch_is_no_rank,
          root_is_stronger_than_the_launcher, many_jobs_at_once, own_name, pods_of_kubernetes, real_torchrun])
