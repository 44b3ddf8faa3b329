#!/usr/bin/env bash
# Slurm with two nodes and two hosts a millisecond apart, all on this machine: one training over
# them, an array, and a job that is interrupted and requeued; each has the files of a training by
# itself. As root, on a machine of one's own: it installs slurm-wlm, munge, openssh-server and
# iproute2, starts their daemons on loopback and ends them.
# Usage: scripts/cluster_smoke.sh [PROGRAM]   (default: build/cudp)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=$(realpath "${1:-build/cudp}")
repository=$PWD
here=$(mktemp -d /tmp/cudp-cluster-XXXXXX)
export SLURM_CONF=$here/slurm.conf CUDP=$program
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
# Ranks of both nodes would take the same names in /dev/shm: it is one host.
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_vader_single_copy_mechanism=none
training=(--dataset glyphs --model cnn --method dpis --epsilon 3 --delta 1e-5 --batch 256 --steps 12
          --accountant rdp --seed 5 --threads 1 --device cpu --quiet)

packages=(slurm-wlm munge openmpi-bin openssh-server iproute2)
missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || missing+=("$package")
done
if ((${#missing[@]})); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

hosts_down() {
  for i in 1 2; do
    if [[ -f $here/sshd$i.pid ]]; then kill "$(cat "$here/sshd$i.pid")" 2>/dev/null || true; fi
    ip netns del "cudp$i" 2>/dev/null || true
  done
  ip link del brcudp 2>/dev/null || true
}
munge_process=
finish() {
  scontrol shutdown >/dev/null 2>&1 || true
  sleep 1
  if [[ -n $munge_process ]]; then kill "$munge_process" 2>/dev/null || true; fi
  hosts_down
  rm -rf "$here"
}
trap finish EXIT

slurm_up() {
  mkdir -p /run/munge "$here"/{state,log,tmp.n1,tmp.n2,spool/n1,spool/n2}
  chown munge: /run/munge
  if ! munge -n 2>/dev/null | unmunge >/dev/null 2>&1; then
    runuser -u munge -- /usr/sbin/munged
    munge_process=$(cat /run/munge/munged.pid)
  fi
  cat >"$SLURM_CONF" <<EOF
ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
JobRequeue=1
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd.%n.pid
SlurmdSpoolDir=$here/spool/%n
StateSaveLocation=$here/state
SlurmctldLogFile=$here/log/slurmctld.log
SlurmdLogFile=$here/log/slurmd.%n.log
TmpFS=$here/tmp.%n
SlurmctldPort=16817
SlurmdTimeout=30
InactiveLimit=0
KillWait=5
NodeName=n[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[16821-16822] CPUs=2 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
EOF
  slurmctld -f "$SLURM_CONF" -c
  sleep 2
  slurmd -f "$SLURM_CONF" -N n1
  slurmd -f "$SLURM_CONF" -N n2
  sleep 3
  sinfo
}

same() {  # run folder: its release and ledger are those of the training by itself
  diff -r "$here/whole/release" "$1/release" && cmp "$here/whole/private/ledger" "$1/private/ledger"
  echo "same files: $2"
}

"$program" train "${training[@]}" --out "$here/whole" >/dev/null
slurm_up

echo "== srun, two nodes of two ranks"
srun --mpi=pmix -N2 -n4 --overcommit "$program" info | grep '^ranks'
echo "== plain srun, refused"
srun -N2 -n4 --overcommit "$program" train "${training[@]}" --out "$here/refused" 2>&1 | grep -c "would release for itself" || true

echo "== sbatch, two nodes of two ranks"
cd "$here"
RUN=$here/batch sbatch --wait -N2 -n4 --overcommit --output "$here/batch.txt" \
  "$repository/scripts/slurm/train.sbatch" "${training[@]}"
same "$here/batch" "sbatch"

echo "== array of two"
printf '%s\n' "${training[*]}" "${training[*]} --lr 0.25" >lines.txt
RUNS=$here/array sbatch --wait --array 1-2 --output "$here/array-%a.txt" \
  "$repository/scripts/slurm/array.sbatch" lines.txt
same "$here/array/cudp-array-1" "task 1 of the array"
"$program" account "$here/array/cudp-array-1" "$here/array/cudp-array-2" | head -3

echo "== interrupted by SIGUSR1, requeued, ended"
slow=("${training[@]}" --steps 120 --checkpoint-every 10)
"$program" train "${slow[@]}" --out "$here/slow" >/dev/null
job=$(RUN=$here/requeued sbatch --parsable -N2 -n2 --overcommit --output "$here/requeued.txt" \
  "$repository/scripts/slurm/train.sbatch" "${slow[@]}")
for _ in {1..600}; do
  compgen -G "$here/requeued/private/checkpoint-*" >/dev/null && break
  sleep 0.1
done
scancel --signal=USR1 "$job"
for _ in {1..3000}; do  # Slurm holds a requeued job for two minutes
  if [[ -f $here/requeued/private/result.json ]]; then break; fi
  sleep 0.1
done
scontrol show job "$job" | grep -o 'Restarts=[0-9]*'
diff -r "$here/slow/release" "$here/requeued/release" && echo "same files: requeued"
grep -h "interrupted at step" "$here/requeued.txt" | head -1
cd "$repository"

echo "== mpirun, two hosts a millisecond apart"
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$here/id"
cp "$here/id.pub" "$here/authorized"
ssh-keygen -q -t ed25519 -N '' -f "$here/hostkey"
ip link add brcudp type bridge
ip link set brcudp up
for i in 1 2; do
  ip netns add "cudp$i"
  ip link add "vcudp$i" type veth peer name eth0 netns "cudp$i"
  ip link set "vcudp$i" master brcudp up
  tc qdisc add dev "vcudp$i" root netem delay 1ms 2>/dev/null || echo "no netem in this kernel: no delay"
  ip -n "cudp$i" addr add "10.99.0.$i/24" dev eth0
  ip -n "cudp$i" link set eth0 up
  ip -n "cudp$i" link set lo up
  ip netns exec "cudp$i" unshare --uts bash -c "hostname cudp$i; exec /usr/sbin/sshd -f /dev/null -o Port=22 \
    -o ListenAddress=10.99.0.$i -o HostKey=$here/hostkey -o PidFile=$here/sshd$i.pid -o AuthorizedKeysFile=$here/authorized \
    -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes -o UseDNS=no"
done
ip netns exec cudp1 ping -c 2 -q 10.99.0.2 2>/dev/null | tail -1 || true
export OMPI_MCA_plm_rsh_args="-i $here/id -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
over_hosts() {
  ip netns exec cudp1 unshare --uts bash -c 'hostname cudp1; exec mpirun --oversubscribe --bind-to none \
    -H 10.99.0.1:2,10.99.0.2:2 -np 4 --mca btl tcp,self --mca btl_tcp_if_include 10.99.0.0/24 \
    --mca oob_tcp_if_include 10.99.0.0/24 --mca plm rsh "$@"' mpirun "$@"
}
over_hosts "$program" info | grep '^ranks'
over_hosts "$program" train "${training[@]}" --out "$here/hosts"
same "$here/hosts" "two hosts"
