// Package report prints one report in several formats.
//
// A report is a tree, [Document], of a few kinds of element. Builders make it from
// the domain's values: [Plan] from a plan and the trials behind it, [Measurement]
// from one trial, [Search] from a search for the maximum rate. [Text], [Markdown],
// [HTML] and [CSV] print it; charts are also drawn as image files by [Chart.PNG]
// and [Chart.SVG]. JSON needs no document: the domain's types write their own, see
// [JSON].
//
// # Numbers
//
// Every figure carries its unit. An estimate is rounded to what its uncertainty
// supports, anything else to two or three significant digits, except for counts
// and amounts of money, which are exact. What is not known prints as "-", never as a
// number.
package report
