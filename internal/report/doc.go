// Package report prints one report in several formats.
//
// A report is a tree, [Document], of a few kinds of element. [Build] makes it from the
// answer of a run, and [Trace], [Calibration] and others from what else there is to
// tell. [Text], [Markdown], [HTML] and [CSV] print it; charts are also drawn as image
// files by [Chart.PNG] and [Chart.SVG]. JSON needs no document: the domain's types
// write their own.
//
// # Numbers
//
// Every figure carries its unit. An estimate is rounded to what its uncertainty
// supports, anything else to two or three significant digits, except for counts
// and amounts of money, which are exact. What is not known prints as "-", never as a
// number.
package report
