#!/bin/sh
# The choice on the simulator, on eight example clusters: ./clusters.sh GYRE-PERF FOLDER [COLLECTIVE [price]], two minutes. `price`: by price only
gyre_perf=$1 out=$2 collective=${3:-all_reduce} by=${4:-both} i=0
mkdir -p "$out"
while read -r most job; do
  i=$((i + 1))
  simulated="model $job --collective $collective --simulate"
  [ "$by" = price ] && times= || times="-o $out/times-$i.json"
  { echo "gyre-perf $simulated"; $gyre_perf $simulated -b 8 -e $most -f 2 $times; } > "$out/by-price-$i.txt"
  [ "$by" = price ] && continue
  { echo "gyre-perf $simulated"; $gyre_perf $simulated -b 9 -e $most -f 2 --constants "$out/times-$i.json"; } > "$out/by-times-$i.txt"
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
