//go:build slurm

package clusters

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"planner/internal/evidence/programtest"
)

// slurm is a controller and nodes of four H100, four L40S and four A100 each. Jobs go to n1
// and n2, and n3 is where urgent ones preempt them.
type slurm struct{ dir string }

var site slurm

var nodes = []string{"n1", "n2", "n3"}

func testMain(m *testing.M) int {
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	for _, p := range []string{"munged", "slurmctld", "slurmd", "sbatch"} {
		if _, err := exec.LookPath(p); err != nil {
			fmt.Printf("SKIPPED: no %s; .ci/clusters slurm installs it\n", p)
			return 0
		}
	}
	dir, err := os.MkdirTemp("", "slurm-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	site = slurm{dir}
	if program, err = programtest.Build(dir, programtest.Planner); err != nil {
		fmt.Println(err)
		return 1
	}
	defer site.down()
	if err := site.up(); err != nil {
		fmt.Printf("SKIPPED: Slurm does not come up here: %v\n", err)
		return 0
	}
	return m.Run()
}

// up writes the files of a Slurm and starts it. Links to /dev/null pass for GPUs.
func (s slurm) up() error {
	ports, err := freePorts(4)
	if err != nil {
		return err
	}
	for _, d := range []string{"state", "spool/n1", "spool/n2", "spool/n3", "log", "run", "gpu"} {
		if err := os.MkdirAll(filepath.Join(s.dir, d), 0o755); err != nil {
			return err
		}
	}
	for i := range 12 {
		if err := os.Symlink("/dev/null", filepath.Join(s.dir, "gpu", "nvidia"+strconv.Itoa(i))); err != nil {
			return err
		}
	}
	me, err := exec.Command("id", "-un").Output()
	if err != nil {
		return err
	}
	conf := strings.NewReplacer("DIR", s.dir, "USER", strings.TrimSpace(string(me)), "PORT0", ports[0], "PORT1", ports[1], "PORT2", ports[2], "PORT3", ports[3])
	files := map[string]string{"slurm.conf": conf.Replace(slurmConf), "gres.conf": conf.Replace(gresConf), "munge.key": strings.Repeat("not a secret. ", 80)}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	os.Setenv("SLURM_CONF", filepath.Join(s.dir, "slurm.conf"))
	if err := s.daemon("munged", "--key-file="+s.dir+"/munge.key", "--socket="+s.dir+"/run/munge.sock", "--pid-file="+s.dir+"/run/munged.pid",
		"--log-file="+s.dir+"/log/munged.log", "--seed-file="+s.dir+"/run/munged.seed", "--num-threads=2", "--force"); err != nil {
		return err
	}
	if err := s.controller(); err != nil {
		return err
	}
	for _, node := range nodes {
		if err := s.node(node); err != nil {
			return err
		}
	}
	return s.ready(30 * time.Second)
}

const slurmConf = `ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=PORT0
SlurmctldAddr=127.0.0.1
SlurmUser=USER
SlurmdUser=USER
AuthType=auth/munge
AuthInfo=socket=DIR/run/munge.sock
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool/%n
SlurmctldPidFile=DIR/run/slurmctld.pid
SlurmdPidFile=DIR/run/%n.pid
SlurmctldLogFile=DIR/log/slurmctld.log
SlurmdLogFile=DIR/log/%n.log
CommunicationParameters=NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=10
MessageTimeout=10
KillWait=3
MinJobAge=300
MpiDefault=none
GresTypes=gpu
DefMemPerCPU=100
NodeName=DEFAULT CPUs=64 RealMemory=200000 Gres=gpu:h100:4,gpu:l40s:4,gpu:a100:4 State=UNKNOWN
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=PORT1
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=PORT2
NodeName=n3 NodeHostname=localhost NodeAddr=127.0.0.1 Port=PORT3
PartitionName=main Nodes=n1,n2 Default=YES DefaultTime=10 MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=spot Nodes=n3 MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=urgent Nodes=n3 MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF State=UP
`

const gresConf = `Name=gpu Type=h100 File=DIR/gpu/nvidia[0-3]
Name=gpu Type=l40s File=DIR/gpu/nvidia[4-7]
Name=gpu Type=a100 File=DIR/gpu/nvidia[8-11]
`

// daemon starts what goes into the background by itself.
func (s slurm) daemon(argv ...string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", argv[0], err, bytes.TrimSpace(out))
	}
	return err
}

func (s slurm) controller() error { return s.daemon("slurmctld", "-f", s.dir+"/slurm.conf") }

func (s slurm) node(name string) error {
	return s.daemon("slurmd", "-N", name, "-f", s.dir+"/slurm.conf")
}

// ready waits until all nodes can take jobs.
func (s slurm) ready(patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		out, err := exec.Command("sinfo", "-h", "-N", "-p", "main,spot", "-o", "%T").CombinedOutput()
		up := 0
		for word := range strings.FieldsSeq(string(out)) {
			switch strings.TrimRight(word, "*+") {
			case "idle", "mixed", "allocated", "completing":
				if !strings.HasSuffix(word, "*") {
					up++
				}
			}
		}
		if up == len(nodes) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("nodes are not up after %v: %v %s", patience, err, out)
		}
	}
}

// kill ends a daemon with a signal.
func (s slurm) kill(name string, signal syscall.Signal) error {
	data, err := os.ReadFile(filepath.Join(s.dir, "run", name+".pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, signal)
}

// down ends all jobs and all daemons.
func (s slurm) down() {
	_ = exec.Command("scancel", "--me").Run()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, err := exec.Command("squeue", "-h", "--me").Output(); err != nil || len(out) == 0 {
			break
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, name := range append(slices.Clone(nodes), "slurmctld", "munged") {
			_ = s.kill(name, signal)
		}
		time.Sleep(time.Second)
	}
}

// freePorts are ports that nobody listens on.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports, nil
}
