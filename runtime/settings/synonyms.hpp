#pragma once
#include <span>
#include <string_view>

#include "runtime/base/nearest.hpp"

namespace cudp {

/// Returns a list of names of options in Opacus, JAX-Privacy, TensorFlow Privacy, diffprivlib and
/// scikit-learn, each with the corresponding option of cudp. If a user types such a name, the error
/// message suggests that option. A name may correspond to different options in different commands
/// of cudp.
std::span<const Synonym> option_synonyms();

/// Returns how a user states which column of a table is predicted, if `word` is an option of other
/// programs that names one ("label", "--target-column"); "" otherwise. In cudp the schema does.
std::string_view column_hint(std::string_view word);

}  // namespace cudp
