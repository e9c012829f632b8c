<?php
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Included by tree.php.
return \App\work(3000); # @inner
