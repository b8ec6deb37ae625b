"""gyre-perf fit: what it makes of samples that are written by hand, and which it refuses."""
import json
import os
import tempfile

from system import check, run, subjects


def sample(us, algorithm="ring", size=64, **more):
    return {"ranks": 4, "transport": "shm", "processors": 4, "algorithm": algorithm, "grid": [], "bytes": size, "us": [us], **more}


def between(network, us, **more):
    return sample(us, nodes=2, network=network, **more)


class Fits:
    """Into one profile."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.profile = os.path.join(self.folder.name, "constants.json")

    def run(self, *samples, here=True):
        file = os.path.join(self.folder.name, "samples.jsonl")
        with open(file, "w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(each) + "\n" for each in samples)
        return run("fit", file, "-o", self.profile, *(["--for-this-machine"] if here else []))

    def made(self):
        with open(self.profile, encoding="utf-8") as file:
            return json.load(file)

    def times(self, machine):
        return [(of["bytes"], times["algorithm"], times["us"]) for of in self.made()["machines"][machine].get("measured", []) for times in of["times"]]


def times_between_hosts_are_of_the_network_that_joined_them():
    fits = Fits()
    fits.run(sample(1), between("verbs", 10)).passed()
    check((fits.times("host"), fits.times("host_verbs")) == ([([64], "ring", [1])], [([64], "ring", [10])]), f"{fits.made()['machines']}")
    fits.run(between("tcp", 90)).passed()
    check(fits.times("host_verbs") == [([64], "ring", [10])], f"what another network took: {fits.made()['machines']}")
    check(sorted(fits.times("host")) == [([64], "ring", [1]), ([64], "ring", [90])], f"{fits.made()['machines']}")


def what_networks_took_is_not_mixed():
    fits = Fits()
    for one, other in (("tcp", "ucx"), ("verbs", "tcp")):
        fits.run(between(one, 90), between(other, 10)).complains(f"over {one} .*over {other} ")
    fits.run(between("tcp", 90), between("ucx", 10, size=128)).complains("host_between.* over tcp .*over ucx ")
    check(not os.path.exists(fits.profile), "it has written a profile")
    fits.run(between("tcp", 90), between("verbs", 10, size=128)).passed()
    check((fits.times("host"), fits.times("host_verbs")) == ([([64], "ring", [90])], [([128], "ring", [10])]), f"{fits.made()['machines']}")


def what_joined_ranks_inside_hosts_is_not_mixed():
    fits = Fits()
    shm, verbs = between("verbs", 90), between("verbs", 10, size=128, transport="verbs")
    fits.run(shm, verbs).complains("host_verbs_between.* over verbs between hosts and shm inside.* over verbs between hosts and verbs inside")
    fits.run(shm, sample(5, transport="verbs"), sample(1)).passed()
    check("host_verbs_between" in fits.made()["links"], f"{fits.made()['links']}")


def what_a_profile_has_of_the_inside_of_hosts_counts_between_them():
    fits = Fits()
    fits.run(sample(1000)).passed()
    fits.run(between("tcp", 1000, algorithm="hierarchical", grid=[2, 2])).passed()  # no more than what is inside takes by itself
    link = fits.made()["links"]["host_between"]
    check(link["alpha_us"] + link["overhead_us"] < 100, f"{link}, beside {fits.made()['links']['host']}")


def what_does_not_stay_is_said():
    fits = Fits()
    check("begun anew" not in fits.run(sample(1)).passed().out, "of a file that was not there")
    done = fits.run(sample(1), here=False).passed()
    check(f"{fits.profile}: begun anew from the constants compiled in, as what was measured here stays only with --for-this-machine" in done.out, done.story())
    check("made_for" not in fits.made() and fits.times("host") == [], f"{fits.made()}")


def sizes_with_other_algorithms_are_left_out():
    fits = Fits()
    fits.run(sample(1), sample(2, "tree"), sample(3, size=128), sample(4, "one_shot", size=128), sample(5, size=256), sample(6, "tree", size=256),
             sample(7, size=512)).passed()
    check(fits.times("host") == [([64, 256], "ring", [1, 5]), ([64, 256], "tree", [2, 6])], f"{fits.times('host')}")


subjects([times_between_hosts_are_of_the_network_that_joined_them, what_networks_took_is_not_mixed, what_joined_ranks_inside_hosts_is_not_mixed,
          what_a_profile_has_of_the_inside_of_hosts_counts_between_them, what_does_not_stay_is_said, sizes_with_other_algorithms_are_left_out])
