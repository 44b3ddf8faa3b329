#pragma once
#include <string>

#include "runtime/data/schema.hpp"

namespace cudp {

/// Returns the schema with which a table is read for a model trained on rows of `trained`, a
/// complete schema. The result is `given`, with what it leaves open taken from `trained`. Both must
/// give the same features and classes for the same cells. They may differ in how the file is
/// written (delimiter, header, missing texts, date format, suffixes of labels), in columns that
/// give no feature, and in whether unknown categories are refused.
/// source names `given` in messages, model the model. Throws InputError in one line, "SOURCE,
/// column 'age': expected bounds 17 to 90, ..., found ...", on the first column, order, kind,
/// bound, category or class that differs.
TableSchema matched_schema(const TableSchema& trained, const TableSchema& given,
                           const std::string& source, const std::string& model);

}  // namespace cudp
