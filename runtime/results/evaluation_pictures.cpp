#include <algorithm>
#include <array>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/gnuplot.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {
namespace {

constexpr std::array kColours = {"#0060ad", "#dd5511", "#2e8b57", "#8a2be2", "#b8860b",
                                 "#d02090", "#00868b", "#556b2f", "#8b4513", "#708090"};
constexpr std::size_t kMaxNameBytes = 24;
constexpr int kMaxCountedClasses = 20;  ///< whose counts fit into the cells of the matrix

/// A class's name where a picture has room for it: no control characters, and not too long.
std::string label(const std::vector<std::string>& names, int number) {
  std::string text = class_name(names, number);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  if (text.size() <= kMaxNameBytes) return text;
  std::size_t end = kMaxNameBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // whole UTF-8
  return text.substr(0, end) + "...";
}

constexpr const char* kUnitSquare = R"(set size square
set xrange [0:1]
set yrange [0:1]
)";

std::string roc_script(const Evaluation& e, const std::vector<std::string>& names,
                       const std::string& title) {
  std::string blocks;
  std::string plots = "x with lines lw 1 dt 2 lc rgb '#808080' title 'by chance'";
  for (int c = 0; c < e.classes; ++c) {
    const std::vector<RocPoint>& roc = e.of_class[static_cast<std::size_t>(c)].roc;
    if (roc.empty()) continue;
    blocks += fmt::format("$roc{} << EOD\n", c);
    for (const RocPoint& p : roc)
      blocks += fmt::format("{} {}\n", p.false_positives, p.true_positives);
    blocks += "EOD\n";
    const bool named = e.classes <= static_cast<int>(kColours.size());
    plots +=
        fmt::format(", $roc{} using 1:2 with lines lw 2 lc rgb '{}' {}", c,
                    kColours[static_cast<std::size_t>(e.classes == 2 ? 0 : c) % kColours.size()],
                    named ? "title " + gnuplot_text(label(names, c)) : "notitle");
  }
  const std::string auc = std::isnan(e.auc) ? "AUC not defined" : fmt::format("AUC {:.4f}", e.auc);
  return gnuplot_header(title + ": " + auc) + kUnitSquare + R"(set key bottom right
set xlabel 'share of the other classes that is let through'
set ylabel 'share of the class that is let through'
)" + blocks +
         "plot " + plots + "\n";
}

std::string reliability_script(const Evaluation& e, const std::vector<std::string>& names,
                               const std::string& title) {
  std::string s = "$bins << EOD\n";
  bool any = false;
  for (std::size_t i = 0; i < e.reliability.size(); ++i) {
    const Evaluation::Bin& b = e.reliability[i];
    if (b.examples == 0) continue;
    any = true;
    s += fmt::format("{} {} {} {}\n", b.confidence, b.share,
                     (static_cast<double>(i) + 0.5) / Evaluation::kBins,
                     static_cast<double>(b.examples) / static_cast<double>(e.examples));
  }
  s += "EOD\n";
  const bool two = e.classes == 2;
  const std::string of_second = gnuplot_text("p of " + label(names, 1));
  const std::string share =
      gnuplot_text(two ? "share of " + label(names, 1) : "share that is right");
  const std::string error = std::isnan(e.calibration_error)
                                ? "calibration error not defined"
                                : fmt::format("calibration error {:.4f}", e.calibration_error);
  s = gnuplot_header(title + ": " + error) + kUnitSquare + s + R"(set key bottom right
set style fill solid 0.6 noborder
)" + "set xlabel " +
      (two ? of_second : "'largest p'") + "\nset ylabel " + share +
      "\nplot x with lines lw 1 dt 2 lc rgb '#808080' title 'calibrated'";
  if (any)
    s += fmt::format(
        ", $bins using 3:4:(0.9/{}) with boxes lc rgb '#c8d8e8' title 'share of all examples', "
        "$bins using 1:2 with linespoints lw 2 pt 7 lc rgb '#0060ad' title {}",
        Evaluation::kBins, share);
  return s + "\n";
}

/// Cells are coloured by their share of the examples of the label's class.
std::string confusion_script(const Evaluation& e, const std::vector<std::string>& names,
                             const std::string& title) {
  std::string cells = "$cells << EOD\n";
  std::string tics_x;
  std::string tics_y;
  const int every = (e.classes + kMaxCountedClasses - 1) / kMaxCountedClasses;
  for (int label_at = 0; label_at < e.classes; ++label_at) {
    const auto all = static_cast<double>(e.of_class[static_cast<std::size_t>(label_at)].examples);
    for (int c = 0; c < e.classes; ++c) {
      const std::uint64_t count = e.confusion[static_cast<std::size_t>(label_at * e.classes + c)];
      cells += fmt::format("{} {} {} {}\n", c, label_at,
                           all > 0.0 ? static_cast<double>(count) / all : 0.0, count);
    }
    if (label_at % every != 0) continue;
    const std::string name = gnuplot_text(label(names, label_at));
    const char* comma = label_at > 0 ? ", " : "";
    tics_x += fmt::format("{}{} {}", comma, name, label_at);
    tics_y += fmt::format("{}{} {}", comma, name, label_at);
  }
  std::string s = gnuplot_header(title) + cells + "EOD\n" + R"(unset grid
set border 0
set key off
set size ratio -1
set xlabel 'predicted'
set ylabel 'label'
set cblabel 'share of the label''s examples'
set cbrange [0:1]
set palette defined (0 '#ffffff', 1 '#0060ad')
)";
  s += fmt::format("set xrange [-0.5:{0}]\nset yrange [{0}:-0.5]\n", e.classes - 0.5);
  s += "set xtics (" + tics_x + ")" + (e.classes > 6 && !names.empty() ? " rotate by -45" : "") +
       "\n";
  s += "set ytics (" + tics_y + ")\nplot $cells using 1:2:3 with image";
  if (e.classes <= kMaxCountedClasses)
    s += ", $cells using 1:2:(sprintf('%d', $4)):($3 > 0.5 ? 0xffffff : 0x202020) "
         "with labels textcolor rgb variable";
  return s + "\n";
}

}  // namespace

bool draw_evaluation(const Evaluation& e, const std::vector<std::string>& names,
                     const std::string& title, const std::filesystem::path& folder, unsigned mode) {
  if (says_of(e) == Says::target) return true;
  const std::string scripts[] = {roc_script(e, names, title), reliability_script(e, names, title),
                                 confusion_script(e, names, title)};
  bool drawn = true;
  for (std::size_t i = 0; i < std::size(scripts); ++i)
    drawn = run_gnuplot(scripts[i], folder / kEvaluationPictures[i], mode) && drawn;
  return drawn;
}

}  // namespace cudp
