#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/gnuplot.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {
namespace {

/// Maximum number of classes of a picture with a legend that names the classes' curves.
constexpr int kMaxNamedClasses = 2 * kLineColours;
/// Maximum length of a class's name in a picture [bytes].
constexpr std::size_t kMaxNameBytes = 24;
/// Largest number of classes for which the cells of the confusion matrix show counts.
constexpr int kMaxCountedClasses = 20;

/// Returns a class's name for a picture: without control characters and shortened to kMaxNameBytes.
std::string label(const std::vector<std::string>& names, int number) {
  std::string text = class_name(names, number);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  if (text.size() <= kMaxNameBytes) return text;
  std::size_t end = kMaxNameBytes;
  // Do not cut a UTF-8 character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

/// Size of a picture with square axes and a legend beside them.
constexpr PictureSize kSquarePicture{.width = 760, .height = 540};

constexpr const char* kUnitSquare = R"(set size square
set xrange [0:1]
set yrange [0:1]
)";

/// Curves of the classes in one picture: the points, as gnuplot data blocks, and the arguments of
/// gnuplot's `plot` command.
struct Curves {
  std::string blocks;
  std::string plots;
};

/// Returns a curve for each class of the evaluation, except those for which points() returns "".
/// points: function that returns the x and y of each point of a class's curve as text.
template <class Points>
Curves curves_of(const Evaluation& e, const std::vector<std::string>& names, const Points& points) {
  Curves curves;
  for (int c = 0; c < e.classes; ++c) {
    const std::string data = points(e.of_class[static_cast<std::size_t>(c)]);
    if (data.empty()) continue;
    curves.blocks += fmt::format("$curve{} << EOD\n{}EOD\n", c, data);
    const bool named = e.classes <= kMaxNamedClasses;
    const int line = e.classes == 2 ? 0 : c;
    // Colours repeat after kLineColours classes. Classes of the same colour have different dashes.
    curves.plots += fmt::format(", $curve{} using 1:2 with lines lt {} dt {} {}", c,
                                line % kLineColours + 1, line / kLineColours + 1,
                                named ? "title " + gnuplot_text(label(names, c)) : "notitle");
  }
  return curves;
}

/// Adds a point at (x, y) to the picture, labelled with the threshold of the counts `at`. Adds
/// nothing unless x and y are finite.
void add_threshold(Curves& curves, const ThresholdCounts& at, double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) return;
  curves.blocks += fmt::format("$at << EOD\n{} {}\nEOD\n", x, y);
  curves.plots += ", $at using 1:2 with points lt 2 pt 7 ps 1.5 title 'threshold " +
                  threshold_text(at.threshold) + "'";
}

std::string titled(const std::string& title, const char* name, double value) {
  return gnuplot_header(
      title + ": " + name + (std::isnan(value) ? " not defined" : fmt::format(" {:.4f}", value)),
      kSquarePicture);
}

std::string roc_script(const Evaluation& e, const std::vector<std::string>& names,
                       const std::string& title) {
  Curves curves = curves_of(e, names, [](const Evaluation::ClassFigures& of) {
    std::string data;
    for (const RocPoint& p : of.roc)
      data += fmt::format("{} {}\n", p.false_positives, p.true_positives);
    return data;
  });
  if (const auto& at = e.at_threshold)
    add_threshold(curves, *at, 1.0 - at->specificity(), at->sensitivity());
  return titled(title, "AUC", e.auc) + kUnitSquare + R"(set xlabel '1 - specificity'
set ylabel 'sensitivity'
)" + curves.blocks +
         "plot x with lines lt 9 lw 1 dt 2 title 'by chance'" + curves.plots + "\n";
}

/// Returns the gnuplot script for precision-recall curves. The precision of random guessing is the
/// class's share of the examples.
std::string precision_recall_script(const Evaluation& e, const std::vector<std::string>& names,
                                    const std::string& title) {
  Curves curves = curves_of(e, names, [](const Evaluation::ClassFigures& of) {
    std::string data;
    for (const PrecisionRecallPoint& p : of.precision_recall)
      data += fmt::format("{} {}\n", p.recall, p.precision);
    return data;
  });
  const bool two = e.classes == 2 && e.examples > 0;
  const std::string chance = two ? fmt::format("{} with lines lt 9 lw 1 dt 2 title 'by chance'",
                                               static_cast<double>(e.of_class[1].examples) /
                                                   static_cast<double>(e.examples))
                                 : "-1 notitle";
  if (const auto& at = e.at_threshold) add_threshold(curves, *at, at->sensitivity(), at->ppv());
  return titled(title, "average precision", e.average_precision) + kUnitSquare +
         R"(set xlabel 'recall (sensitivity)'
set ylabel 'precision (PPV)'
)" + curves.blocks +
         "plot " + chance + curves.plots + "\n";
}

/// Returns the gnuplot script for the reliability diagram. Prefers bins of equal counts, because
/// they separate the points of a rare class; otherwise bins of equal width.
std::string reliability_script(const Evaluation& e, const std::vector<std::string>& names,
                               const std::string& title) {
  const bool by_count = !e.reliability_by_count.empty();
  std::string points;
  double largest = 0.0;
  for (const Evaluation::Bin& b : by_count ? e.reliability_by_count : e.reliability) {
    if (b.examples == 0) continue;
    points += fmt::format("{} {}\n", b.confidence, b.share);
    largest = std::fmax(largest, std::fmax(b.confidence, b.share));
  }
  const double end = largest > 0.0 ? std::fmin(1.0, 1.1 * largest) : 1.0;
  const bool two = e.classes == 2;
  const std::string share =
      gnuplot_text(two ? "share of " + label(names, 1) : "share that is right");
  std::string s = titled(title, "calibration error", e.calibration_error) +
                  fmt::format("set size square\nset xrange [0:{0}]\nset yrange [0:{0}]\n", end) +
                  "$bins << EOD\n" + points + "EOD\nset xlabel " +
                  (two ? gnuplot_text("p of " + label(names, 1)) : "'largest probability p'") +
                  "\nset ylabel " + share + "\nplot x with lines lt 9 lw 1 dt 2 title 'calibrated'";
  if (!points.empty())
    s += fmt::format(", $bins using 1:2 with linespoints lt 1 title 'bins of equal {}'",
                     by_count ? "counts" : "width");
  return s + "\n";
}

/// Returns the gnuplot script for the confusion matrix. The colour of a cell is the fraction of the
/// true class's examples that are in it.
std::string confusion_script(const Evaluation& e, const std::vector<std::string>& names,
                             const std::string& title) {
  std::string cells = "$cells << EOD\n";
  std::string tics_x;
  std::string tics_y;
  const int every = (e.classes + kMaxCountedClasses - 1) / kMaxCountedClasses;
  for (int label_at = 0; label_at < e.classes; ++label_at) {
    const auto all = static_cast<double>(e.of_class[static_cast<std::size_t>(label_at)].examples);
    for (int c = 0; c < e.classes; ++c) {
      const std::uint64_t count =
          e.confusion[static_cast<std::size_t>(label_at) * static_cast<std::size_t>(e.classes) +
                      static_cast<std::size_t>(c)];
      cells += fmt::format("{} {} {} {}\n", c, label_at,
                           all > 0.0 ? static_cast<double>(count) / all : 0.0, count);
    }
    if (label_at % every != 0) continue;
    const std::string name = gnuplot_text(label(names, label_at));
    const char* comma = label_at > 0 ? ", " : "";
    tics_x += fmt::format("{}{} {}", comma, name, label_at);
    tics_y += fmt::format("{}{} {}", comma, name, label_at);
  }
  std::string s = gnuplot_header(title, kSquarePicture) + cells + "EOD\n" + R"(unset grid
set border 0
set key off
set size ratio -1
set xlabel 'predicted'
set ylabel 'label'
set cblabel 'share of the label''s examples'
set cbrange [0:1]
set palette defined (0 '#ffffff', 1 '#0072b2')
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

void start_evaluation_pictures(const Evaluation& e, const std::vector<std::string>& names,
                               const std::string& title, const std::filesystem::path& folder,
                               unsigned mode, Pictures& pictures) {
  if (prediction_kind(e) == PredictionKind::target) return;
  const std::string scripts[] = {
      roc_script(e, names, title), precision_recall_script(e, names, title),
      reliability_script(e, names, title), confusion_script(e, names, title)};
  static_assert(std::size(scripts) == std::size(kEvaluationPictures));
  for (std::size_t i = 0; i < std::size(scripts); ++i)
    pictures.start(scripts[i], folder / kEvaluationPictures[i], mode);
}

bool draw_evaluation(const Evaluation& e, const std::vector<std::string>& names,
                     const std::string& title, const std::filesystem::path& folder, unsigned mode) {
  Pictures pictures;
  start_evaluation_pictures(e, names, title, folder, mode, pictures);
  return pictures.finish();
}

}  // namespace cudp
