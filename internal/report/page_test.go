//go:build browser

package report

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// TestPageInABrowser opens a report as its reader does, from a file: on a desktop and on a
// phone, light and dark. PLANNER_PICTURES=FOLDER keeps pictures, and PLANNER_PAGE=FILE
// tries another report than the fixture's.
func TestPageInABrowser(t *testing.T) {
	path := os.Getenv("PLANNER_PAGE")
	if path == "" {
		path = must.File(t, "report.html", string(HTML(documents()["plan"])))
	}
	c := browse(t)
	for _, width := range []int{1280, 400} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d-%s", width, scheme), func(t *testing.T) {
				c.t = t
				c.open(path, width, scheme)
				c.picture(t.Name()[len("TestPageInABrowser/"):] + "-first")
				tryCharts(c)
				tryTables(c, width)
				tryContrast(c)
				c.picture(t.Name()[len("TestPageInABrowser/"):])
				if len(c.complaints) > 0 {
					t.Errorf("the page complains: %s", c.complaints)
				}
				for _, address := range c.requests {
					if !strings.HasPrefix(address, "file://") {
						t.Errorf("the page asks for %s", address)
					}
				}
			})
		}
	}
	c.t = t
	c.open(path, 1280, "light")
	whole := c.sheets()
	if pages := eval[int](c, `document.querySelector("section.details").remove(), document.querySelectorAll("section.page").length`); pages != 1 {
		t.Fatalf("%d first pages", pages)
	}
	if first := c.sheets(); first != 1 || whole < 2 {
		t.Errorf("the first page prints on %d sheets, the whole report on %d", first, whole)
	}
}

// tryCharts draws all charts and asks them for figures, by pointer and by keys.
func tryCharts(c *chromium) {
	t := c.t
	blank := eval[string](c, `(async () => {
		document.querySelectorAll("details.section").forEach((section) => (section.open = true));
		const boxes = [...document.querySelectorAll(".live")];
		for (let i = 0; i < 50 && boxes.some((box) => !box.dataset.drawn); i++) await new Promise((done) => setTimeout(done, 50));
		await new Promise((done) => setTimeout(done, 200));
		if (!boxes.length) return "there is no chart";
		const inked = (canvas) => {
			const seen = new Set(), pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
			for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 200) seen.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
			return seen.size;
		};
		return boxes.filter((box) => !box.querySelector("canvas") || inked(box.querySelector("canvas")) < 5).map((box) => box.ariaLabel).join("; ");
	})()`)
	if blank != "" {
		t.Errorf("not drawn: %s", blank)
	}
	var at struct{ X, Y float64 }
	at = eval[struct{ X, Y float64 }](c, `(() => {
		const over = document.querySelector(".live .u-over");
		over.scrollIntoView({ block: "center", behavior: "instant" });
		const box = over.getBoundingClientRect();
		return { X: box.left + box.width / 2, Y: box.top + box.height / 2 };
	})()`)
	c.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": at.X, "y": at.Y})
	if told := eval[string](c, `new Promise((done) => setTimeout(() => done(document.querySelector(".told").textContent), 100))`); strings.HasPrefix(told, "Point at") {
		t.Errorf("under the pointer stands %q", told)
	}
	eval[bool](c, `document.querySelector(".live").focus(), true`)
	c.press("ArrowRight")
	told := eval[string](c, `new Promise((done) => setTimeout(() => done(document.querySelector(".told").textContent), 100))`)
	if !strings.Contains(told, "trial") {
		t.Errorf("after an arrow key stands %q", told)
	}
	c.press("Enter")
	if n := eval[int](c, `document.querySelectorAll("tr.selected").length`); n < 1 {
		t.Errorf("a trial that is selected in a chart is marked in %d rows", n)
	}
	c.press("Enter")
}

// tryTables sorts and filters the longest table of trials, and looks for what is cut.
func tryTables(c *chromium, width int) {
	t := c.t
	for script, want := range map[string]string{
		// Sorted both ways by the second column.
		`(() => {
			const value = (row) => parseFloat(row.cells[1].textContent.replace(/,/g, "")) || -Infinity;
			const rows = () => [...table.tBodies[0].rows].map(value);
			const button = table.querySelectorAll("th button")[1];
			const sorted = (list, sign) => list.every((v, i) => !i || sign * (v - list[i - 1]) >= 0 || v === list[i - 1]);
			button.click();
			const up = sorted(rows(), 1), head = button.parentElement.ariaSort;
			button.click();
			return [up, head, sorted(rows(), -1), button.parentElement.ariaSort].join();
		})()`: "true,ascending,true,descending",
		// Filtered to the rows that hold a word, and back.
		`(() => {
			const input = table.parentElement.previousElementSibling.querySelector("input");
			const shown = () => [...table.tBodies[0].rows].filter((row) => row.offsetParent !== null);
			const whole = shown().length;
			const write = (text) => { input.value = text; input.dispatchEvent(new Event("input")); };
			write("unsure");
			const some = shown();
			const right = some.length > 0 && some.length < whole && some.every((row) => row.textContent.includes("unsure"));
			write("");
			return [right, shown().length === whole].join();
		})()`: "true,true",
		// A row that is selected is marked elsewhere too.
		`(() => {
			const row = table.querySelector("tr[data-trial]");
			row.click();
			const marked = [...document.querySelectorAll("tr.selected")];
			const right = marked.length > 1 && marked.every((other) => other.dataset.trial === row.dataset.trial);
			row.click();
			return [right, document.querySelectorAll("tr.selected").length].join();
		})()`: "true,0",
	} {
		longest := `const table = [...document.querySelectorAll("details.section > .scroll table")].filter((table) => table.querySelector("tr[data-trial]"))
			.sort((a, b) => b.rows.length - a.rows.length)[0]; return `
		if got := eval[string](c, "(() => {"+longest+script+"})()"); got != want {
			t.Errorf("%s: got %s, want %s", script, got, want)
		}
	}
	if over := eval[int](c, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("the page is %d pixels wider than the screen", over)
	}
	if width < 1000 {
		return
	}
	if cut := eval[string](c, `[...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth + 1)
		.map((box) => box.innerText.slice(0, 80) + " " + box.scrollWidth + " of " + box.clientWidth).join("; ")`); cut != "" {
		t.Errorf("columns are cut: %s", cut)
	}
}

// tryContrast asks for a contrast of 4.5 between every text and what is behind it.
func tryContrast(c *chromium) {
	poor := eval[string](c, `(() => {
		const rgb = (text) => text.match(/[\d.]+/g).map(Number);
		const light = (text) => rgb(text).slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
			.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
		const paper = light(getComputedStyle(document.body).backgroundColor);
		const ratio = (ink) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
		const all = [...document.querySelectorAll("main *, nav *")].filter((e) => e.children.length === 0 && e.textContent.trim() && e.closest("svg,script") === null);
		return [...new Set(all.map((e) => [ratio(light(getComputedStyle(e).color)), e]).filter(([r]) => r < 4.5).map(([r, e]) => e.tagName + "." + e.className + " " + r.toFixed(1)))].join("; ");
	})()`)
	if poor != "" {
		c.t.Errorf("too little contrast: %s", poor)
	}
}
