<?php
// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A page for php -S.
function render($rows) {
    return implode('', array_map(function ($row) { return '<li>' . sprintf('%09d', $row) . '</li>'; }, $rows));
}
echo render(range(1, 20000));
