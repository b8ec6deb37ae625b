"""Hosts on one machine: network namespaces joined by veth pairs."""
import json
import os
import subprocess

from system import Process, Skipped, await_that, needs


def ip(*words, must=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if must and done.returncode != 0:
        raise Skipped(f"ip {' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Hosts:
    """So many namespaces; gone when the block is left, whatever happens in it."""

    def __init__(self, count):
        self.names = [f"gyre{os.getpid()}-{i}" for i in range(count)]

    def __enter__(self):
        needs("ip")
        try:
            for name in self.names:
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            self.join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            for pid in ip("netns", "pids", name, must=False).split():
                subprocess.run(["kill", "-9", pid], stderr=subprocess.DEVNULL, check=False)
            ip("netns", "del", name, must=False)

    def start(self, host, command, env=None):
        return Process(["ip", "netns", "exec", self.names[host], *command], env)

    def veth(self, hosts, links, addresses):
        ip("link", "add", links[0], "netns", self.names[hosts[0]], "type", "veth", "peer", "name", links[1], "netns", self.names[hosts[1]])
        for host, link, address in zip(hosts, links, addresses):
            ip("-n", self.names[host], "addr", "add", f"{address}/24", "dev", link)
            ip("-n", self.names[host], "link", "set", link, "up")

    def is_running(self, host, link):
        return self.state(host, link)["operstate"] == "UP"

    def state(self, host, link):
        return next(each for each in json.loads(ip("-n", self.names[host], "-s", "-j", "link")) if each["ifname"] == link)


class TwoHosts(Hosts):
    """host(0) has 10.77.x.1, host(1) 10.77.x.2."""

    def __init__(self):
        super().__init__(2)
        own = os.getpid()
        self.links = [f"gy{own}v{i}" for i in range(2)]
        self.addresses = [f"10.77.{own % 254 + 1}.{i + 1}" for i in range(2)]

    def join(self):
        self.veth((0, 1), self.links, self.addresses)
        # The kernel calls a link running a little later, and UCX takes no other.
        await_that(lambda: all(self.is_running(host, self.links[host]) for host in range(2)), "the link does not come up", 10)

    def cut(self):
        ip("-n", self.names[1], "link", "set", self.links[1], "down")

    def sent(self, host):
        """Bytes that this host has put on the link."""
        return self.state(host, self.links[host])["stats64"]["tx"]["bytes"]


class Star(Hosts):
    """host(0) reaches each other, by a link of its own; these do not reach each other. hub[i] is what host(0) is to host(i)."""

    def join(self):
        self.hub = ["127.0.0.1"]
        for host in range(1, len(self.names)):
            at = f"10.78.{os.getpid() % 32 * 8 + host}"
            links = [f"gy{os.getpid()}s{host}{end}" for end in "ab"]
            self.veth((0, host), links, (f"{at}.1", f"{at}.2"))
            await_that(lambda h=host, link=links[1]: self.is_running(h, link), "a link does not come up", 10)
            self.hub.append(f"{at}.1")
