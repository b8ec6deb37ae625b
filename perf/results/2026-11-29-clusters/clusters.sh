#!/bin/sh
# What the choice by price costs on the simulator, on eight example clusters: ./clusters.sh GYRE-PERF FOLDER COLLECTIVE...
gyre_perf=$1 out=$2
shift 2
mkdir -p "$out"
for collective; do
  i=0
  while read -r most job; do
    i=$((i + 1))
    command="model $job --collective $collective --simulate -b 8 -e $most -f 2"
    { echo "gyre-perf $command"; $gyre_perf $command; } > "$out/$collective-$i.txt"
  done <<'JOBS'
1G --ranks 8 --nodes 1
1G --ranks 16 --nodes 2
256M --ranks 128 --nodes 16
64M --ranks 512 --nodes 64
64M --ranks 512 --nodes 512
16M --ranks 4096 --nodes 4096
1G --ranks 8 --nodes 8 --machine host
256M --ranks 64 --nodes 16 --machine host_tcp
JOBS
done
