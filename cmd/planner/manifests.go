package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/engines"
	"planner/plan"
	"planner/plan/fleet"
	"planner/plan/manifest"
	"planner/sweep"
)

func (p *program) manifestsCommand() *cli.Command {
	return &cli.Command{
		Name:      "manifests",
		Usage:     "the plan of a run folder as Kubernetes manifests, or as a Slurm script",
		ArgsUsage: "RUN",
		Description: "Example: planner manifests runs/first | kubectl apply -f -\n" +
			"         planner manifests runs/fleet --name chat   # of 'planner fleet -o': the autoscaler of the policy\n" +
			"         planner manifests runs/first --slurm --sbatch=--partition=h100 > serve.sh\n" +
			"A Deployment, or a LeaderWorkerSet where an instance spans nodes, with Service, PodDisruptionBudget and\n" +
			"autoscaler; of a replayed fleet the HorizontalPodAutoscaler or ScaledObject alone. Keys are taken from a Secret of the same name, which you make.",
		Flags: append(shared("name"), poolFlag(),
			&cli.StringFlag{Name: "namespace", Usage: "of Kubernetes (default: that of who applies): --namespace llm"},
			&cli.StringFlag{Name: "image", Usage: "of the engine (default: the one that its project publishes): --image registry.example/vllm:v0.20.0"},
			&cli.StringFlag{Name: "volume-claim", Usage: "PersistentVolumeClaim that holds checkpoints: --volume-claim models"},
			&cli.StringSliceFlag{Name: "node-selector", Usage: "label of the nodes, repeatable: --node-selector nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3"},
			&cli.StringFlag{Name: "node-gpus", Usage: "GPUs of a node (default: the plan's): --node-gpus 4"},
			&cli.BoolFlag{Name: "slurm", Usage: "a batch script for Slurm instead"},
			&cli.StringSliceFlag{Name: "sbatch", Usage: "further option of sbatch, repeatable: --sbatch=--partition=h100"},
		),
		Action: func(c *cli.Context) error {
			if c.IsSet("sbatch") && !c.Bool("slurm") {
				return usagef("manifests: --sbatch is an option of Slurm scripts; give --slurm")
			}
			if c.Bool("slurm") {
				return p.handedOver(c, manifest.Slurm)
			}
			return p.handedOver(c, manifest.Kubernetes)
		},
	}
}

func (p *program) rulesCommand() *cli.Command {
	return &cli.Command{
		Name:      "rules",
		Usage:     "Prometheus recording and alert rules for the plan of a run folder",
		ArgsUsage: "RUN",
		Description: "Example: planner rules runs/first > planner.rules.yaml\n" +
			"Requests in flight beside what the plan gives a replica, queue, KV cache, and how fast the requests that may\n" +
			"be beyond a limit are used up.",
		Flags:  append(shared("name"), poolFlag()),
		Action: func(c *cli.Context) error { return p.handedOver(c, manifest.Rules) },
	}
}

func (p *program) handedOver(c *cli.Context, write func(*plan.Plan, manifest.Options) ([]byte, error)) error {
	folder, about, err := openedFolder(c)
	if err != nil {
		return err
	}
	cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.Need{})
	if err != nil {
		return err
	}
	f := flagsOf(c)
	o := manifest.Options{Name: c.String("name"), Namespace: c.String("namespace"), Image: c.String("image"),
		VolumeClaim: c.String("volume-claim"), SBatch: c.StringSlice("sbatch"), NodeGPUs: ifGiven(f, "node-gpus", f.count),
		Env: cfg.Engine.Env} // plans contain only the names
	if f.err != nil {
		return f.err
	}
	o.NodeSelector = map[string]string{}
	for _, label := range c.StringSlice("node-selector") {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return usagef("--node-selector: %q is not label=value", label)
		}
		o.NodeSelector[key] = value
	}
	if about.Command == "fleet" && c.Command.Name == "manifests" && !c.Bool("slurm") {
		return p.autoscalerOf(folder, o)
	}
	var planned plan.Plan
	switch err := folder.ReadJSON("plan.json", &planned); {
	case errors.Is(err, fs.ErrNotExist) && (about.Command == "plan" || about.Command == "estimate"):
		return usagef("%s: %s has no plan.json: either it has no plan, as 'planner report %s' says, or 'planner resume %s' makes it",
			c.Command.Name, folder.Path, folder.Path, folder.Path)
	case errors.Is(err, fs.ErrNotExist):
		return usagef("%s: %s was made by 'planner %s' and holds no plan; give the folder of a finished 'planner plan', or of 'planner estimate -o'",
			c.Command.Name, folder.Path, about.Command)
	case err != nil:
		return err
	}
	of, err := poolOf(&planned, c.String("pool"))
	if err != nil {
		return usagef("%s: %s: %w", c.Command.Name, folder.Path, err)
	}
	if of != &planned {
		o.Pool = c.String("pool")
	}
	out, err := write(of, o)
	if err != nil {
		return usagef("%s: %s: %w", c.Command.Name, folder.Path, err)
	}
	_, err = p.plain.Write(out)
	return err
}

// poolFlag selects the pool of a mix of classes to hand over.
func poolFlag() cli.Flag {
	return &cli.StringFlag{Name: "pool", Usage: "the class of a mix whose pool is meant, or all for one pool: --pool chat"}
}

// poolOf returns the plan of a class's pool. The name is required if the plan recommends a pool per class.
func poolOf(p *plan.Plan, class string) (*plan.Plan, error) {
	pools := p.Handover.Pools
	if class == "all" || class == "" && (pools == nil || pools.Recommended == plan.OnePool) {
		return p, nil
	}
	if pools == nil {
		return nil, fmt.Errorf("--pool: the plan has no pools of classes")
	}
	var names []string
	for _, pool := range pools.Each {
		if pool.Class == class && pool.Plan != nil {
			return pool.Plan, nil
		}
		names = append(names, pool.Class)
	}
	if class == "" {
		return nil, fmt.Errorf("a pool for each class is recommended: give --pool %s in turn, or --pool all for one pool", strings.Join(names, ", --pool "))
	}
	return nil, fmt.Errorf("--pool: %q: there is no plan of such a pool; the classes are %s", class, strings.Join(names, ", "))
}

// autoscalerOf writes the autoscaler policy of a replayed fleet.
func (p *program) autoscalerOf(folder sweep.Folder, o manifest.Options) error {
	var stored struct {
		Answer fleet.Answer `json:"answer"`
	}
	switch err := folder.ReadJSON(storedFile, &stored); {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("manifests: %s has no answer, as its replay was interrupted; replay it again", folder.Path)
	case err != nil:
		return err
	}
	cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.Need{Engine: true, Simulated: true, Lists: true})
	if err != nil {
		return err
	}
	served := &plan.Served{Name: cfg.Model.Name, Checkpoint: engines.ServedModel(cfg), ServedName: cfg.Engine.ServedName}
	out, err := manifest.Autoscaler(&stored.Answer, served, o)
	if err != nil {
		return usagef("manifests: %s: %w", folder.Path, err)
	}
	_, err = p.plain.Write(out)
	return err
}
