package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/report"
	"planner/model"
	"planner/sweep/measure"
)

// completionScripts ask the program itself for completions: `planner complete` gets the words up to the cursor,
// as typed.
var completionScripts = map[string]string{
	"bash": `_planner() {
  local cur="${COMP_WORDS[COMP_CWORD]}"
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  [[ $cur == [\"\']* || ${#COMPREPLY[@]} == 0 ]] || mapfile -t COMPREPLY < <(printf '%q\n' "${COMPREPLY[@]}")
}
complete -o default -F _planner planner
`,
	"zsh": `#compdef planner
_planner() {
  local -a found open
  found=("${(@f)$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if (( ${#found} )) && [[ -n ${found[1]} ]]; then
    [[ ${found[1]} == *= ]] && open=(-S '')
    compadd -U "${open[@]}" -- "${found[@]}"
  else
    _files
  fi
}
compdef _planner planner
`,
	"fish": `complete -c planner -a '(set -l words (commandline -opc) (commandline -ct); $words[1] complete -- $words[2..] 2>/dev/null)'
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

func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "complete", Hidden: true,
		Action: func(c *cli.Context) error {
			for _, word := range completions(c.App, list.Map(c.Args().Slice(), unquoted)) {
				fmt.Fprintln(p.plain, word)
			}
			return nil
		},
	}
}

// unquoted removes shell quotes and backslashes from a word.
func unquoted(word string) string {
	return strings.NewReplacer(`\`, "", `"`, "", "'", "").Replace(word)
}

// completions lists the completions of the last word. Shells that split words at equals signs want only the
// part after.
func completions(app *cli.App, words []string) []string {
	behind := ""
	if n := len(words); n > 1 && words[n-1] == "=" {
		words = append(words, "")
	}
	if n := len(words); n > 2 && words[n-2] == "=" {
		behind = words[n-3] + "="
		words = append(words[:n-3:n-3], behind+words[n-1])
	}
	last := len(words) - 1
	if last < 0 {
		return nil
	}
	return list.FilterMap(candidates(app, words[:last], words[last]), func(word string) (string, bool) {
		return strings.TrimPrefix(word, behind), len(word) >= len(words[last]) && strings.EqualFold(word[:len(words[last])], words[last])
	})
}

// candidates are the words that may follow others, given the beginning of the word.
func candidates(app *cli.App, before []string, start string) []string {
	if len(before) == 0 {
		return list.Map(app.VisibleCommands(), func(c *cli.Command) string { return c.Name })
	}
	command := app.Command(before[0])
	if command == nil {
		return nil
	}
	if flag, _, whole := strings.Cut(start, "="); whole && strings.HasPrefix(flag, "--") {
		return prefixed(flag+"=", flagValues(command, flag[2:], start[len(flag)+1:]))
	}
	if flag, is := strings.CutPrefix(before[len(before)-1], "--"); is && takesValue(command.Flags, flag) {
		return flagValues(command, flag, start)
	}
	if strings.HasPrefix(start, "-") {
		return prefixed("--", list.Map(command.VisibleFlags(), func(f cli.Flag) string { return f.Names()[0] }))
	}
	return positional(command.Name, before[1:])
}

func flagValues(command *cli.Command, flag, start string) []string {
	keys := config.Keys()
	switch {
	case flag == "set":
		if key, _, whole := strings.Cut(start, "="); whole {
			return prefixed(key+"=", named(key, keys[key]))
		}
		return list.Map(slices.Sorted(maps.Keys(keys)), func(key string) string { return key + "=" })
	case flag == "slo":
		stats := list.Map(measure.Stats(), func(stat string) string { return stat + "=" })
		return slices.Concat(list.Map(measure.AllLatencies(), func(m measure.Metric) []string { return prefixed(m.String()+".", stats) })...)
	case flag == "format" && command.Name == "report":
		return reportFormats()
	case flag == "table":
		return []string{report.TrialsSheet, report.AlternativesSheet, report.SensitivitySheet}
	}
	for _, s := range shortcutsAmong(command.Flags) {
		if s.flag == flag {
			return named(s.key, keys[s.key])
		}
	}
	return nil
}

// named returns the values of a key: its words, or names of the catalog.
func named(key string, words []string) []string {
	catalog, err := model.NewCatalog()
	switch {
	case err != nil:
		return words
	case key == "hardware.gpu":
		return list.Map(catalog.GPUs(), func(g model.Hardware) string { return g.Name })
	case key == "model.name":
		return list.Map(catalog.Models(), func(m model.Arch) string { return m.Name })
	}
	return words
}

func positional(command string, before []string) []string {
	switch command {
	case "catalog":
		if len(before) == 0 {
			return catalogLists()
		}
		switch before[0] {
		case "gpus":
			return named("hardware.gpu", nil)
		case "models":
			return named("model.name", nil)
		}
	case "schema":
		return slices.Sorted(maps.Keys(schemas()))
	case "completion":
		return slices.Sorted(maps.Keys(completionScripts))
	}
	return nil
}

func prefixed(prefix string, words []string) []string {
	return list.Map(words, func(word string) string { return prefix + word })
}
