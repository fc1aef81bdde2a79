package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// completionScripts ask the program itself for what can follow.
var completionScripts = map[string]string{
	"bash": `_planner() {
  local IFS=$'\n' cur="${COMP_WORDS[COMP_CWORD]}" words=("${COMP_WORDS[@]:0:$COMP_CWORD}")
  [[ $cur == -* ]] && words+=("$cur")
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o default -F _planner planner
`,
	"zsh": `#compdef planner
_planner() {
  local -a opts
  opts=("${(@f)$(${words[@]:0:#words[@]-1} --generate-bash-completion 2>/dev/null)}")
  _describe 'planner' opts
  _files
}
compdef _planner planner
`,
	"fish": `complete -c planner -a '(set -l t (commandline -opc); $t --generate-bash-completion 2>/dev/null)'
`,
}

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for bash, zsh or fish",
		ArgsUsage: "SHELL",
		Description: "Example: source <(planner completion bash)\n" +
			"         planner completion fish > ~/.config/fish/completions/planner.fish",
		Action: func(c *cli.Context) error {
			shell, err := onePositional(c, "shell")
			if err != nil {
				return err
			}
			script, ok := completionScripts[shell]
			if !ok {
				return usagef("completion: unknown shell %q; allowed: bash, zsh, fish", shell)
			}
			_, err = fmt.Fprint(p.stdout, script)
			return err
		},
	}
}
