update runs set {assignments} where id = $1
