"""The rig itself: its exit codes and outputs, traffic between its devices, rails that are cut and mended, and two guests."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

RIG = pathlib.Path(__file__).resolve().parent / "rig"
SKIPPED = 77

# One round of ibv_rc_pingpong on rail $1; what its two ends tell each other goes over rail $2.
PINGPONG = """
pingpong() {
  ibv_rc_pingpong -e -d rxe_b$1 -g 1 -n 20 > /dev/null & server=$!
  until grep -q ':4853 00000000:0000 0A' /proc/net/tcp; do sleep 0.1; done
  timeout "$3" ibv_rc_pingpong -e -d rxe_a$1 -g 1 -n 20 10.77.$2.2 >&2 && echo "rail $1 carries" || echo "rail $1 does not"
  kill $server 2> /dev/null; wait $server
}
"""


def rig(*options, command, timeout=280, **environment):
    done = subprocess.run([RIG, "--timeout", str(timeout), *options, "--", "bash", "-c", command], capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)
    if done.returncode == SKIPPED:
        print(done.stderr, end="")
        sys.exit(SKIPPED)
    return done


def check(condition, text, done):
    if not condition:
        sys.exit(f"FAILED: {text}\nexit code {done.returncode}\n{done.stdout}stderr:\n{done.stderr}")


def one_guest_with_two_rails():
    done = rig("--rails", "2", command=PINGPONG + """
        ibv_devinfo | grep -c PORT_ACTIVE
        echo to stderr >&2
        pingpong 0 1 60
        "$RIG"/rails cut 0; pingpong 0 1 3; pingpong 1 1 60
        "$RIG"/rails mend 0; pingpong 0 1 60
        touch /tmp/gyre-left-behind
        exit 7""")
    wanted = ["4", "rail 0 carries", "rail 0 does not", "rail 1 carries", "rail 0 carries"]
    check(done.returncode == 7, "the command's exit code, 7, does not come through", done)
    check(done.stdout.splitlines() == wanted, f"stdout is not {wanted}", done)
    check("to stderr\n" in done.stderr, "stderr does not come through", done)
    check(not os.path.exists("/tmp/gyre-left-behind"), "the guest wrote on this machine", done)


def two_guests_over_a_bad_cable():
    """A ping-pong goes on only where each loss is made good. It is left in the middle, as no two sides agree on a last word."""
    done = rig("--vms", "2", "--mem", "1G", "--netem", "loss 2% delay 1ms", command="""
        if [ $RIG_NODE = 1 ]; then
          ibv_rc_pingpong -e -d rxe_b0 -g 1 -n 1000000 > /dev/null 2>&1 &
          while busybox ping -c 5 $RIG_PEER > /dev/null; do :; done
        else
          until ibv_rc_pingpong -e -d rxe_a0 -g 1 -n 1000000 $RIG_PEER; do sleep 0.2; done > /dev/null 2>&1 &
          until [ $(cat /sys/class/infiniband/rxe_a0/ports/1/hw_counters/rcvd_pkts) -gt 500 ]; do sleep 0.2; done
        fi
        tc -s qdisc show root | grep -o 'dropped [0-9]*'""")
    check(done.returncode == 0, "not both guests succeed", done)
    lost = dict(re.findall(r"^\[([01])\] dropped (\d+)$", done.stdout, re.M))
    check(lost.keys() == {"0", "1"} and "0" not in lost.values(), "there was no loss on both ends", done)


def a_command_that_does_not_end():
    done = rig(command="sleep 1000", timeout=2)
    check(done.returncode == 124 and "time limit" in done.stderr, "not stopped at the time limit", done)


def a_machine_without_qemu():
    done = subprocess.run([sys.executable, RIG, "--", "true"], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    check(done.returncode == SKIPPED and "not installed: qemu-system-x86" in done.stderr, "does not say that qemu is missing", done)


if shutil.which("ibv_rc_pingpong") is None:
    print("not installed: ibverbs-utils")
    sys.exit(SKIPPED)
for test in (a_machine_without_qemu, a_command_that_does_not_end, one_guest_with_two_rails, two_guests_over_a_bad_cable):
    begun = time.monotonic()
    test()
    print(f"ok      {test.__name__.replace('_', ' ')} ({time.monotonic() - begun:.1f} s)", flush=True)
