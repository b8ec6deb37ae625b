"""Two hosts on one machine: network namespaces joined by a veth pair."""
import json
import os
import subprocess

from system import Process, Skipped, await_that, needs


def ip(*words, must=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if must and done.returncode != 0:
        raise Skipped(f"ip {' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


class TwoHosts:
    """host(0) has 10.77.x.1, host(1) 10.77.x.2; gone when the block is left, whatever happens in it."""

    def __enter__(self):
        needs("ip")
        own = os.getpid()
        self.names = [f"gyre{own}-{i}" for i in range(2)]
        self.links = [f"gy{own}v{i}" for i in range(2)]
        self.addresses = [f"10.77.{own % 254 + 1}.{i + 1}" for i in range(2)]
        try:
            for name in self.names:
                ip("netns", "add", name)
            ip("link", "add", self.links[0], "netns", self.names[0], "type", "veth",
               "peer", "name", self.links[1], "netns", self.names[1])
            for i, name in enumerate(self.names):
                ip("-n", name, "addr", "add", f"{self.addresses[i]}/24", "dev", self.links[i])
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", self.links[i], "up")
            # The kernel calls a link running a little later, and UCX takes no other.
            await_that(lambda: all(self.is_running(host) for host in range(2)), "the link does not come up", 10)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            for pid in ip("netns", "pids", name, must=False).split():
                subprocess.run(["kill", "-9", pid], stderr=subprocess.DEVNULL, check=False)
            ip("netns", "del", name, must=False)

    def cut(self):
        ip("-n", self.names[1], "link", "set", self.links[1], "down")

    def link(self, host):
        return next(link for link in json.loads(ip("-n", self.names[host], "-s", "-j", "link")) if link["ifname"] == self.links[host])

    def is_running(self, host):
        return self.link(host)["operstate"] == "UP"

    def sent(self, host):
        """Bytes that this host has put on the link."""
        return self.link(host)["stats64"]["tx"]["bytes"]

    def start(self, host, command, env=None):
        return Process(["ip", "netns", "exec", self.names[host], *command], env)
