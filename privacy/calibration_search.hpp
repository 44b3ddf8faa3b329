#pragma once
#include <functional>
#include <string>

namespace cudp::privacy {

/// Tolerances of search_fitting_value(). epsilon: how far log(epsilon found) may be below
/// log(epsilon allowed). aim: how far below log(epsilon allowed) Newton's steps aim. value: largest
/// relative distance between a value that fits the budget and one that does not. move: if the value
/// is a whole number, the smallest step from one tried value to the next, relative to the value.
struct Tolerance {
  double epsilon, aim;
  double value, move;
  double exact;  ///< whole numbers below this number are found exactly
};

/// Description of the number that search_fitting_value() finds, e.g. the noise multiplier: its name
/// (what), a first guess, and the ends of the search. safe_end: the end at which least privacy is
/// spent; if the budget does not suffice there, it suffices nowhere. greedy_end: the end at which
/// most is spent. The search is on a logarithmic scale.
struct Unknown {
  const char* what = "";
  double guess = 1.0;
  double safe_end = 0.0, greedy_end = 0.0;
  bool whole = false;  ///< whether only whole numbers are allowed

  /// Returns the value whose logarithm is v, rounded if only whole numbers are allowed.
  double value_at(double v) const;
};

/// How far epsilon exceeds the budget's if the unknown has the value e^v: log(epsilon / budget's
/// epsilon); <= 0 if the value fits. Epsilon may differ between the two directions in which
/// neighbours differ.
struct Excess {
  /// Excess in the worse direction by an accountant with a coarse grid. Finite.
  std::function<double(double v)> coarse;
  /// Excess in the worse direction by the usual accountant.
  std::function<double(double v)> fine;
  /// Excess in the other direction by the usual accountant. Empty if `fine` covers both directions.
  std::function<double(double v)> other;
};

/// Finds the value x of one unknown with which a composition just stays within its budget (epsilon,
/// delta). The search is for a zero of excess.fine(v), v = log x. First excess.coarse finds two
/// values around the zero, and the slope. Then Newton's steps use excess.fine; they stay between
/// `good`, a v that fits, and `bad`, one that does not.
///
/// The result fits in both directions: excess.fine and excess.other are <= 0 at its logarithm.
/// Throws std::domain_error, with the text `budget`, if no value fits, and if the search does not
/// converge. budget: epsilon and delta, in words.
double search_fitting_value(const Unknown& unknown, const Tolerance& tolerance,
                            const Excess& excess, const std::string& budget);

}  // namespace cudp::privacy
