#!/bin/sh
# One_shot (staged) and two_shot (bounced) in turn, five rounds: ./rounds.sh PEER_GYRE > rounds.txt
for round in 1 2 3 4 5; do
  for type in float32 bfloat16; do
    for ranks in 2 4 8; do
      bind=; [ $ranks = 2 ] && bind=--bind
      for algorithm in one_shot two_shot; do
        echo "# round $round $algorithm"
        GYRE_ALGORITHM=$algorithm "$1" -n $ranks --op all_reduce --type $type --sizes 2K,4K,8K,16K,32K --budget-ms 25 $bind | grep '"us"'
      done
    done
  done
done
