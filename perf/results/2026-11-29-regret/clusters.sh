#!/bin/sh
# The choice on the simulator, on eight example clusters: ./clusters.sh GYRE-PERF FOLDER [COLLECTIVE], two minutes
gyre_perf=$1 out=$2 collective=${3:-all_reduce} i=0
mkdir -p "$out"
while read -r most job; do
  i=$((i + 1))
  { echo "gyre-perf model $job"; $gyre_perf model $job --collective $collective --simulate -b 8 -e $most -f 2 -o "$out/times-$i.json"; } > "$out/by-price-$i.txt"
  { echo "gyre-perf model $job"; $gyre_perf model $job --collective $collective --simulate -b 9 -e $most -f 2 --constants "$out/times-$i.json"; } > "$out/by-times-$i.txt"
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
