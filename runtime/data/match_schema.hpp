#pragma once
#include <string>

#include "runtime/data/schema.hpp"

namespace cudp {

/// The schema to read a table with for a model that was trained on rows of `trained`, which is
/// complete: `given` where the two give the same features and classes of the same cells, what it
/// leaves open taken from `trained`. How the file is written may differ (delimiter, header, missing
/// texts, the form of dates, suffixes of labels), and so may columns that give no feature, and
/// whether unknown categories are refused.
/// Throws InputError in one line, "SOURCE, column 'age': expected bounds 17 to 90, ..., found ...",
/// on the first column, order, kind, bound, category or class that differs. source names `given`,
/// model the model.
TableSchema matched_schema(const TableSchema& trained, const TableSchema& given,
                           const std::string& source, const std::string& model);

}  // namespace cudp
